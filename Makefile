# make test   what the README names: all tests; as root also those on the real kernel
# make ci     what has to pass before a change lands
# make help   the other targets

GO          ?= go
STATICCHECK  = honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK  = golang.org/x/vuln/cmd/govulncheck@v1.8.0
PLATFORMS    = linux/amd64 linux/arm64 linux/386 darwin/arm64 windows/amd64

# What the tests look at the kernel with, and the Debian packages that have it.
TOOLS        = ip tc bpftool iptables ip6tables iptables-legacy nft ipset unshare setpriv flock chattr /lib/systemd/systemd-sysctl
PACKAGES     = iproute2 bpftool iptables nftables ipset util-linux e2fsprogs systemd

.PHONY: test tools race fmt vet staticcheck tidy vulncheck fuzz bench ci help

test: tools ## run all tests
	$(GO) test -timeout 14m ./...

tools: ## install the Debian packages that the tests need, where they are missing
	@for tool in $(TOOLS); do \
		PATH=$$PATH:/usr/sbin:/sbin command -v $$tool >/dev/null && continue; \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo "installing $(PACKAGES), which the tests use"; \
			apt-get update -qq && apt-get install -y -qq --no-install-recommends $(PACKAGES) || exit 1; \
			break; \
		fi; \
		echo "$$tool is missing: the tests that use it skip (install $(PACKAGES))"; \
	done

race: tools ## run all tests under the race detector
	$(GO) test -race -timeout 25m ./...

fmt: ## fail if gofmt would change a file
	@changed=$$(gofmt -l .); [ -z "$$changed" ] || { echo "gofmt would change:"; echo "$$changed"; exit 1; }

vet: ## vet for every platform that the packages build on
	@for p in $(PLATFORMS); do \
		echo "vet $$p"; CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) vet ./... || exit 1; \
	done

staticcheck: ## run staticcheck
	$(GO) run $(STATICCHECK) ./...

tidy: ## fail if go mod tidy would change something
	$(GO) mod tidy -diff

vulncheck: ## look for known vulnerabilities, where the database can be reached
	@$(GO) run $(GOVULNCHECK) ./... > /tmp/govulncheck.$$$$ 2>&1; status=$$?; cat /tmp/govulncheck.$$$$; \
	if grep -q 'fetching vulnerabilities' /tmp/govulncheck.$$$$; then echo "the vulnerability database cannot be reached from here"; status=0; fi; \
	rm -f /tmp/govulncheck.$$$$; exit $$status

fuzz: ## run each fuzz target for 10 seconds
	@for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for target in $$(grep -ho '^func Fuzz[A-Za-z0-9_]*' $$dir/*_test.go | cut -c6-); do \
			echo "$$dir $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime 10s $$dir || exit 1; \
		done; \
	done

bench: ## run all benchmarks
	$(GO) test -run '^$$' -bench . -benchtime 200ms ./...

ci: ## all checks
	bash .ci/run

help: ## show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 14
