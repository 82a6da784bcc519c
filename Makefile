# make test     what the README names: the tests of every importable package and the examples;
#               as root also on the real kernel
# make verify   the other proofs, below internal/verify
# make ci       what has to pass before a change lands
# make help     the other targets

GO          ?= go
# As nodeinit is built for a container, so that the tests and what they run are compiled once.
export CGO_ENABLED = 0
LOWEST       = go1.25.0
STATICCHECK  = honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK  = golang.org/x/vuln/cmd/govulncheck@v1.8.0
GREMLINS     = github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0
PLATFORMS    = linux/amd64 linux/arm64 linux/386 darwin/arm64 windows/amd64

# What the tests look at the kernel with, and the Debian packages that have it.
TOOLS        = ip tc bpftool iptables ip6tables iptables-legacy nft ipset modprobe unshare setpriv flock chattr strace mkfs.ext4 mkfs.xfs prlimit \
               /lib/systemd/systemd-sysctl /usr/lib/cni/bridge /usr/bin/time
PACKAGES     = iproute2 bpftool iptables nftables ipset kmod util-linux e2fsprogs xfsprogs strace time systemd containernetworking-plugins

# What others embed: tested with the lowest versions too.
LEAVES       = bootstrap bpffs cgroup cleanup cniinstall configresolve sysctl

# Modules of their own, so that what they need reaches no user of the packages.
NESTED       = bootstrap/otel bootstrap/prom examples/postrender internal/verify/image internal/verify/kubernetes

.PHONY: $(shell grep -oE '^[a-z0-9-]+:' Makefile | tr -d :)

# What make test tests: all but the laboratories, of which one takes seconds; first the packages that take longest.
TESTED       = ./examples/nodeinit ./cniinstall ./sysctl ./cleanup ./internal/verify/installers $$($(GO) list ./... | grep -v /internal/verify/)
OTHERS       = -C bootstrap/otel $(1) ./... + -C bootstrap/prom $(1) ./... + -C examples/postrender $(1) ./...
GOTEST       = $(GO) run ./internal/verify/gotest

test: tools ## the tests of the packages and examples
	@echo "building and running the tests; the first time, downloading Go modules"
	@$(GOTEST) -short -count 1 $(TESTED) + $(call OTHERS,-short -count 1)

race: tools ## the same at full length and under the race detector, which needs a C compiler
	@CGO_ENABLED=1 $(GOTEST) -race -count 1 -timeout 25m $(TESTED) + $(call OTHERS,-race -count 1)

verify: attack-sample fault-sample layouts neighbours image-same fuzz-chain kube cri-sample e2e-sample kernels-short ## all proofs that take minutes; those that take longer have targets of their own

attack-sample: tools ## each operation that touches a path 2,000 times beside an attacker
	@$(GOTEST) -count 1 ./internal/verify/attack

fault-sample: tools ## some of the faults at calls of nodeinit's commands, full disks and power cuts
	@$(GOTEST) -count 1 -timeout 25m ./internal/verify/faults

neighbours: tools ## agents that share a node, and what the proofs share
	@$(GOTEST) -count 1 $$($(GO) list ./internal/verify/... | grep -vE '/(attack|faults|layouts|installers)(/|$$)')

image-same: ## the container images are the same bytes each time
	@$(GOTEST) -C internal/verify/image -count 1 ./...

KUBERNETES   = -C internal/verify/kubernetes

kube: tools ## a real kube-apiserver and etcd, built the first time (8 CPU-minutes)
	@$(GOTEST) $(KUBERNETES) -count 1 -timeout 25m ./realkube/...

cri: ## real containerds under bootstrap/cri and nodeinit (5 CPU-minutes to build)
	@SLIPWAY_TEST_REQUIRE_ROOT=1 $(GOTEST) $(KUBERNETES) -count 1 -p 1 -timeout 25m ./realcri

cri-sample: ## Debian's containerd alone
	@$(GOTEST) $(KUBERNETES) -count 1 -short -timeout 25m ./realcri

e2e-sample: tools ## a Kubernetes of one or two nodes, in short: one life, one fault, one power cut
	@$(GOTEST) $(KUBERNETES) -short -count 1 -timeout 25m ./e2e/...

e2e: tools ## a Kubernetes of one to four nodes: faults, power cuts, Flannel, versions (OLDER=CHECKOUT)
	SLIPWAY_TEST_REQUIRE_ROOT=1 $(if $(OLDER),SLIPWAY_E2E_OLDER=$(abspath $(OLDER))) $(GO) test $(KUBERNETES) -count 1 -v -timeout 60m ./e2e/...

e2e-cilium: tools ## the real agent of Cilium on it (15 CPU-minutes to build; SLIPWAY_E2E_CILIUM=1.18.3)
	@internal/verify/install "the agent, which compiles its programs" clang-19 clang-19
	SLIPWAY_TEST_REQUIRE_ROOT=1 $(GO) test $(KUBERNETES) -tags cilium -count 1 -v -timeout 90m -run Cilium ./e2e

RELEASES ?= bullseye bookworm trixie sid
systemd: tools ## sysctl's tests on the systemd of four Debian releases (as root; RELEASES=: some)
	@internal/verify/install "roots of Debian releases" mmdebstrap mmdebstrap
	$(GO) vet -tags systemd ./sysctl
	@bin=$$(mktemp -d) && $(GO) test -tags systemd -c -o $$bin/test ./sysctl && \
		internal/verify/realsystemd/run $(RELEASES) $$bin/test; status=$$?; rm -rf $$bin; exit $$status

layouts: tools ## nodeinit on 18 node layouts of distributions
	@$(GOTEST) -count 1 ./internal/verify/layouts

KERNELS ?= 5.10,6.1,6.12,6.18,newest,6.12-arm64
kernels: machine-tools ## demo, life and all tests on other kernels, in VMs (as root; hours; KERNELS=: some)
	$(GO) run ./internal/verify/realkernels -kernels $(KERNELS)

kernels-short: machine-tools ## the same on the oldest kernel, for packages whose calls differ by kernel
	$(GO) run ./internal/verify/realkernels -short

kernels-short-install: machine-tools
	$(GO) run ./internal/verify/realkernels -short -install

machine-tools:
	@internal/verify/install "virtual machines" "depmod mke2fs mmdebstrap xz zstd" e2fsprogs kmod mmdebstrap xz-utils zstd

kernels-table: ## write the table of what make kernels has shown into EVIDENCE.md
	$(GO) run ./internal/verify/realkernels -table EVIDENCE.md

codes: ## write the table of codes into CODES.md
	$(GO) test -count=1 -run PLAN18_CodesAreDocumented . -update

api: ## write what others can use of the packages into API.txt
	$(GO) test -count=1 -run TheAPIIsAsListed . -update

charts: ## others' charts given nodeinit, on three API servers; writes EVIDENCE.md
	SLIPWAY_EVIDENCE=$(CURDIR)/EVIDENCE.md $(GO) test $(KUBERNETES) -tags charts -count 1 -timeout 60m -run Charts ./realkube/config

compare: ## nodeinit beside build-config of Cilium 1.18 and 1.20 (4 CPU-minutes each to build)
	$(GO) test $(KUBERNETES) -tags compare -count 1 -v -timeout 30m -run Compa ./realkube/config

BENCH        = -run '^$$' -timeout 60m

scale: ## cleanup of thousands of links, beside one by one (CILIUM=1: and beside Cilium's own)
	$(GO) test $(BENCH) -bench Cleanup -benchtime 3x ./internal/verify/bench $(if $(CILIUM),-cilium)

growth: ## what a program grows by when it uses a package (OLDER=CHECKOUT: beside another one)
	$(GO) test $(BENCH) -bench Growth -benchtime 1x ./internal/verify/bench $(if $(OLDER),-older $(abspath $(OLDER)))

faults: tools ## every fault at every call of nodeinit's commands, and power cuts (hours)
	$(GO) run ./internal/verify/faults/inject
	$(GO) run ./internal/verify/faults/inject -power 200

attack: ## each operation 100,000 times beside an attacker (half an hour; TARGET=REGEXP)
	$(GO) run ./internal/verify/attack -n 100000 -target '$(TARGET)'

image: ## images of nodeinit for amd64 and arm64, into bin/image (NAME=REPOSITORY:TAG)
	$(GO) run -C internal/verify/image ./pack -o $(CURDIR)/bin/image $(addprefix -name ,$(NAME))

RELEASE      = $(GO) run -C internal/verify/image ./release -version '$(VERSION)' -o
release: ## what is published of a version, into dist (VERSION=v0.1.0)
	rm -rf dist
	@$(RELEASE) $(CURDIR)/dist

release-same: ## the same twice, from two caches, and compared (6 CPU-minutes from empty caches)
	@temp=$$(mktemp -d) && $(RELEASE) $$temp/first && GOCACHE=$$temp/cache $(RELEASE) $$temp/second >/dev/null && \
	diff -r $$temp/first $$temp/second && echo "both are the same"; status=$$?; rm -rf $$temp; exit $$status

tools: ## install the Debian packages that the tests need, where they are missing
	@internal/verify/install "the tests" "$(TOOLS)" $(PACKAGES)

lowest: tools ## build with the lowest Go and versions of go.mod; test what others embed
	GOTOOLCHAIN=$(LOWEST) $(GO) build ./...
	GOTOOLCHAIN=$(LOWEST) $(GOTEST) -short -count 1 -timeout 25m $(LEAVES:%=./%/...)

# What others embed that links more of other modules than system calls.
LINKING      = $$($(GO) list -f '{{.ImportPath}} {{join .Deps " "}}' $(LEAVES:%=./%/...) | sed -E 's, (vendor|github.com/slipway-dev|golang.org/x/sys)/[^ ]*,,g' | grep -E ' [^ /]*\.' | cut -d' ' -f1)

newest: tools ## build with the newest versions; test what embeds them; may fail by others
	@temp=$$(mktemp -d) && .ci/newest $$temp && export GOFLAGS=-modfile=$$temp/go.mod && $(GO) build ./... && $(GOTEST) -short -count 1 -timeout 25m $(LINKING); \
	status=$$?; rm -rf $$temp; exit $$status

fmt: ## fail if gofmt would change a file
	@changed=$$(gofmt -l .); [ -z "$$changed" ] || { echo "gofmt would change:"; echo "$$changed"; exit 1; }

vet: ## vet for every platform that the packages build on
	@for p in $(PLATFORMS); do \
		echo "vet $$p"; GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) vet ./... || exit 1; \
	done
	$(GO) vet -tags systemd ./sysctl
	@for dir in $(NESTED); do echo "vet $$dir"; $(GO) vet -C $$dir -tags compare,charts,cilium ./... || exit 1; done

staticcheck: ## run staticcheck
	$(GO) run $(STATICCHECK) ./...
	@for dir in $(NESTED); do (cd $$dir && $(GO) run $(STATICCHECK) ./...) || exit 1; done

tidy: ## fail if go mod tidy would change something
	$(GO) mod tidy -diff
	@for dir in $(NESTED) internal/verify/kubernetes/realkube/testdata/server; do echo "tidy $$dir"; (cd $$dir && $(GO) mod tidy -diff) || exit 1; done

VULNDB       ?= https://vuln.go.dev
# What reaches us by its symbols alone: see Dependencies in CONTRIBUTING.md.
ACCEPTED      = GO-2026-6238

vulncheck: ## look for known vulnerabilities (VULNDB=file://DIR: in data/osv of golang/vulndb)
	@$(GO) run $(GOVULNCHECK) -db $(VULNDB) ./... > /tmp/govulncheck.$$$$ 2>&1; status=$$?; cat /tmp/govulncheck.$$$$; \
	if grep -q 'fetching vulnerabilities' /tmp/govulncheck.$$$$; then echo "the vulnerability database cannot be reached from here"; status=0; fi; \
	found=$$(sed -n 's/^Vulnerability #[0-9]*: //p' /tmp/govulncheck.$$$$); \
	if [ "$$found" = "$(ACCEPTED)" ]; then echo "$$found is accepted"; status=0; fi; \
	rm -f /tmp/govulncheck.$$$$; exit $$status

FUZZTIME    ?= 2m

fuzz: ## run each fuzz target for two minutes (FUZZTIME: for another time)
	@for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for target in $$(grep -ho '^func Fuzz[A-Za-z0-9_]*' $$dir/*_test.go | cut -c6-); do \
			echo "$$dir $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$dir || exit 1; \
		done; \
	done

fuzz-chain: ## run the fuzz target that reads other CNIs' files for 30 seconds
	@$(GO) test -run '^$$' -fuzz '^FuzzChain$$' -fuzztime 30s ./cniinstall || { \
		for input in $$(git ls-files --others cniinstall/testdata/fuzz); do echo "$$input:"; cat "$$input"; done; exit 1; }

MUTATED ?= ./bpffs
mutants: tools ## change conditions, see what no test notices (MUTATED=./sysctl; only in .ci/fresh)
	$(GO) run $(GREMLINS) unleash --workers 1 --timeout-coefficient 8 --arithmetic-base=false --invert-logical --invert-loopctrl $(MUTATED)

bench: ## run the benchmarks of the packages and examples
	$(GO) test -run '^$$' -bench . -benchtime 200ms $$($(GO) list ./... | grep -v /internal/verify/)

ci: ## all checks
	bash .ci/run

help: ## show this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | expand -t 16
