# make test   what the README names: all tests; as root also those on the real kernel
#             (RACE=-race: under the race detector, but for test-e2e, which starts programs;
#             MODFILE=FILE: those of the root module with the versions of another go.mod)
# make ci     what has to pass before a change lands
# make help   the other targets

GO          ?= go
LOWEST       = go1.25.0
STATICCHECK  = honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK  = golang.org/x/vuln/cmd/govulncheck@v1.8.0
PLATFORMS    = linux/amd64 linux/arm64 linux/386 darwin/arm64 windows/amd64

# What the tests look at the kernel with, and the Debian packages that have it.
TOOLS        = ip tc bpftool iptables ip6tables iptables-legacy nft ipset unshare setpriv flock chattr strace mkfs.ext4 mkfs.xfs prlimit \
               /lib/systemd/systemd-sysctl /usr/lib/cni/bridge /usr/bin/time
PACKAGES     = iproute2 bpftool iptables nftables ipset util-linux e2fsprogs xfsprogs strace time systemd containernetworking-plugins

# What others embed: tested with the lowest versions too.
LEAVES       = bootstrap bpffs cgroup cleanup cniinstall configresolve sysctl

# Modules of their own, so that what they need reaches no user of the packages.
NESTED       = bootstrap/otel bootstrap/prom internal/cniconform internal/e2e internal/realkube internal/realkube/testdata/server

.PHONY: test test-packages test-traces test-cni test-kube cri systemd layouts tools lowest fmt vet staticcheck tidy vulncheck fuzz fuzz-chain bench charts compare storm scale attack faults image ci help kernels kernels-short kernels-short-install kernels-table machine-tools test-e2e e2e e2e-cilium

test: test-packages test-traces test-cni test-kube test-e2e ## run all tests

test-packages: tools ## the tests of the packages and examples
	GOFLAGS="$$($(GO) env GOFLAGS) $(addprefix -modfile=,$(MODFILE))" $(GO) test $(RACE) -timeout 25m ./...

test-traces: ## Prometheus and OpenTelemetry
	cd bootstrap/otel && $(GO) vet ./... && $(GO) test $(RACE) ./...
	cd bootstrap/prom && $(GO) vet ./... && $(GO) test $(RACE) ./...

test-cni: tools ## containerd's loader, libcni and the reference plugins over what cniinstall writes
	cd internal/cniconform && $(GO) vet ./... && $(GO) test $(RACE) -count 1 ./...

test-kube: ## a real kube-apiserver and etcd, built from their modules the first time (8 CPU-minutes, with what test-e2e runs)
	cd internal/realkube && $(GO) vet -tags compare,charts ./... && $(GO) test $(RACE) -timeout 25m ./...

test-e2e: tools ## nodeinit on a Kubernetes of one node, in short: one life, one fault
	cd internal/e2e && $(GO) vet -tags cilium ./... && $(GO) test -short -count 1 -timeout 25m ./...

e2e: tools ## nodeinit on a Kubernetes of one node: each arrangement, every fault, what a killed test leaves (SLIPWAY_E2E_CONTAINERD=2.1.4: on another containerd)
	cd internal/e2e && $(GO) vet ./... && SLIPWAY_TEST_REQUIRE_ROOT=1 $(GO) test -count 1 -v -timeout 60m ./...

e2e-cilium: tools ## the real agent of Cilium on it, built the first time (15 CPU-minutes): how soon it is Ready, a node's life with it, and a node that is moved from its six init containers to ours and back
	@command -v clang-19 >/dev/null || { echo "installing clang-19, which the agent compiles its programs with"; \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends clang-19; }
	cd internal/e2e && $(GO) vet -tags cilium ./... && SLIPWAY_TEST_REQUIRE_ROOT=1 $(GO) test -tags cilium -count 1 -v -timeout 60m -run Cilium .

cri: ## real containerds under bootstrap/cri and nodeinit, built from their modules the first time (5 CPU-minutes)
	SLIPWAY_TEST_REQUIRE_ROOT=1 $(GO) test -tags realcri -count 1 -p 1 -timeout 25m -run Real ./bootstrap/cri ./examples/nodeinit

RELEASES ?= bullseye bookworm trixie sid
systemd: tools ## sysctl's tests on the booted systemd of four Debian releases, installed the first time (as root; RELEASES=: some of them)
	@command -v mmdebstrap >/dev/null || apt-get install -y -qq --no-install-recommends mmdebstrap
	$(GO) vet -tags systemd ./sysctl
	@bin=$$(mktemp -d) && CGO_ENABLED=0 $(GO) test -tags systemd -c -o $$bin/test ./sysctl && \
		internal/realsystemd/run $(RELEASES) $$bin/test; status=$$?; rm -rf $$bin; exit $$status

layouts: tools ## nodeinit on nodes laid out as 17 distributions lay them out, with a table; part of test-packages
	SLIPWAY_TEST_REQUIRE_ROOT=1 $(GO) test -count 1 -v ./internal/layouts

KERNELS ?= 5.10,6.1,6.12,6.18,newest,6.12-arm64
kernels: machine-tools ## the demo, the command's life and all tests on other kernels, in virtual machines, installed the first time (as root; hours; KERNELS=: some of them)
	$(GO) run ./internal/realkernels -kernels $(KERNELS)

kernels-short: machine-tools ## the same on the oldest kernel, with the tests of the packages whose calls differ by kernel
	$(GO) run ./internal/realkernels -short

kernels-short-install: machine-tools
	$(GO) run ./internal/realkernels -short -install

machine-tools:
	@for tool in depmod mke2fs mmdebstrap xz zstd; do \
		PATH=$$PATH:/usr/sbin:/sbin command -v $$tool >/dev/null && continue; \
		echo "installing what virtual machines are made with"; \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends e2fsprogs kmod mmdebstrap xz-utils zstd || exit 1; \
		break; \
	done

kernels-table: ## write the table of what make kernels has shown into the README
	$(GO) run ./internal/realkernels -table README.md

charts: ## the components of examples/deploy over the charts of others, rendered by helm, before a real API server (helm is built the first time: 4 CPU-minutes)
	cd internal/realkube && $(GO) test -tags charts -count 1 -run Charts ./config

compare: ## nodeinit beside Cilium's own build-config, built from its module the first time (3 CPU-minutes)
	cd internal/realkube && $(GO) test -tags compare -count 1 -v -run Compa ./config

storm: ## 5,000 nodes that boot at once, against one API server
	cd internal/realkube && $(GO) run ./bootstorm

scale: ## cleanup of thousands of links, beside deletion one by one
	$(GO) run ./internal/bench/cleanupscale

FAULTS ?= faults.json
SHARD  ?= 0/1
faults: tools ## every fault at every call of nodeinit's commands, and power cuts (hours; goes on where it was ended: FAULTS=FILE, SHARD=I/N)
	$(GO) run ./internal/faults/inject -state $(FAULTS) -shard $(SHARD)
	$(GO) run ./internal/faults/inject -power 200

attack: ## each operation that touches a path 100,000 times beside an attacker (half an hour; TARGET=REGEXP for some)
	$(GO) run ./internal/attack -n 100000 -target '$(TARGET)'

image: ## nodeinit as a container image for amd64 and arm64, into bin/image, the same bytes each time (NAME=REPOSITORY:TAG)
	$(GO) run ./internal/image/pack $(addprefix -name ,$(NAME))

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

lowest: tools ## build all with the lowest Go and the lowest versions, which go.mod has; test what others embed
	GOTOOLCHAIN=$(LOWEST) $(GO) build ./...
	GOTOOLCHAIN=$(LOWEST) $(GO) test -timeout 25m $(LEAVES:%=./%/...)

fmt: ## fail if gofmt would change a file
	@changed=$$(gofmt -l .); [ -z "$$changed" ] || { echo "gofmt would change:"; echo "$$changed"; exit 1; }

vet: ## vet for every platform that the packages build on
	@for p in $(PLATFORMS); do \
		echo "vet $$p"; CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) vet ./... || exit 1; \
	done
	CGO_ENABLED=0 GOOS=linux $(GO) vet -tags realcri ./bootstrap/cri ./examples/nodeinit
	CGO_ENABLED=0 GOOS=linux $(GO) vet -tags systemd ./sysctl

staticcheck: ## run staticcheck
	$(GO) run $(STATICCHECK) ./...
	@for dir in bootstrap/otel bootstrap/prom internal/cniconform internal/e2e internal/realkube; do (cd $$dir && $(GO) run $(STATICCHECK) ./...) || exit 1; done

tidy: ## fail if go mod tidy would change something
	$(GO) mod tidy -diff
	@for dir in $(NESTED); do echo "tidy $$dir"; (cd $$dir && $(GO) mod tidy -diff) || exit 1; done

vulncheck: ## look for known vulnerabilities, where the database can be reached
	@$(GO) run $(GOVULNCHECK) ./... > /tmp/govulncheck.$$$$ 2>&1; status=$$?; cat /tmp/govulncheck.$$$$; \
	if grep -q 'fetching vulnerabilities' /tmp/govulncheck.$$$$; then echo "the vulnerability database cannot be reached from here"; status=0; fi; \
	rm -f /tmp/govulncheck.$$$$; exit $$status

FUZZTIME    ?= 2m

fuzz: ## run each fuzz target for two minutes (FUZZTIME: for another time)
	@for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for target in $$(grep -ho '^func Fuzz[A-Za-z0-9_]*' $$dir/*_test.go | cut -c6-); do \
			echo "$$dir $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$dir || exit 1; \
		done; \
	done

fuzz-chain: ## run the fuzz target that reads other CNIs' files for 30 seconds
	$(GO) test -run '^$$' -fuzz '^FuzzChain$$' -fuzztime 30s ./cniinstall

bench: ## run all benchmarks
	$(GO) test -run '^$$' -bench . -benchtime 200ms ./...

ci: ## all checks
	bash .ci/run

help: ## show this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | expand -t 16
