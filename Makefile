# Everything goes through here; `make help` lists it. `make run` and `make test`
# prepare a fresh Debian or Ubuntu machine first (see scripts/setup).

GO     ?= scripts/go
AS     := $(CURDIR)/scripts/as-user
TESTS  ?= ./...
FLAGS  ?=

.PHONY: help run test lint bench bench-tasks bench-view build setup setup-tests cover fuzz examples

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

run: setup build ## prepare the machine and walk through the demo: make run [ARGS=--once]
	@bin/reins demo $(ARGS)

test: setup-tests build ## prepare the machine and run every test, with the race detector
	$(GO) vet ./...
	REINS_BIN=$(CURDIR)/bin/reins $(GO) test -race -timeout 20m -p 1 -exec "$(AS)" $(FLAGS) $(TESTS)

build: ## build bin/reins
	@CGO_ENABLED=0 $(GO) build -trimpath -o bin/reins ./cmd/reins

setup: ## install what building and running need from the system's packages
	@scripts/setup

setup-tests: ## install what the tests need besides
	@scripts/setup tests

lint: ## formatting, vet, staticcheck
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

examples: ## build and test the adapters for Go agent libraries, each a module of its own
	@scripts/examples

bench: setup build ## measure every verb through MCP against the floor, as ratios
	$(GO) build -o bin/reins-bench ./internal/bench
	@$(AS) bin/reins-bench $(ARGS)

bench-tasks: setup build ## let scripted agents do small web tasks with only tools and snapshots
	$(GO) build -o bin/reins-tasks ./internal/tasks
	@$(AS) bin/reins-tasks -reins bin/reins $(ARGS)

bench-view: setup build ## measure the live view, side by side with noVNC where Xvnc and npm are there
	$(GO) build -o bin/reins-bench-view ./internal/bench/view
	@command -v npm >/dev/null && npm install --prefix bin/novnc --no-save --ignore-scripts --no-audit --no-fund --silent @novnc/novnc@1.7 || true
	@chmod -R a+rX bin
	@$(AS) $(CURDIR)/bin/reins-bench-view --novnc $(CURDIR)/bin/novnc/node_modules/@novnc/novnc $(ARGS)

cover: ## test coverage by package
	$(GO) test -exec "$(AS)" -cover $(TESTS)

fuzz: ## fuzz what comes from outside, a minute each
	@scripts/fuzz
