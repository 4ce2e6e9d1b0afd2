SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.PHONY: test check services build lint

packages = $(shell go list -m -f '{{.Dir}}/...')
cache = $(or $(POSTRIDER_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/postrider)

# Every test of every module in go.work, against real servers.
test: check services
	eval "$$(scripts/services env)"
	go test -race -count=1 -timeout=50m $(packages)

check:
	@unformatted=$$(gofmt -l .)
	if [[ -n $$unformatted ]]; then echo "not formatted, run gofmt -w:"; echo "$$unformatted"; exit 1; fi
	go vet $(packages)

services:
	scripts/services up

build:
	go build -o bin/postrider ./cmd/postrider

golangci_version := v2.15.0
golangci = $(cache)/golangci-lint-$(golangci_version)/golangci-lint

lint: $(golangci)
	@failed=0
	for module in $$(go list -m -f '{{.Dir}}'); do
		echo "lint $$module"
		(cd "$$module" && "$(golangci)" run ./...) || failed=1
	done
	exit $$failed

$(golangci):
	GOBIN=$(@D) GOFLAGS= go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(golangci_version)
