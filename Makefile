# weft: every target that needs something first checks for it and installs it (scripts/bootstrap.sh).

PREFIX ?= /usr/local
DESTDIR ?=
# A file of your own for `make demo`; without it the demo pushes the weft binary itself.
FILE ?=
# Seconds per fuzz target, and which; all of them if none is named.
FUZZ_SECONDS ?= 600
FUZZ_TARGETS ?=
# Cases per property, and transfers and seeds, in `make soak`.
SOAK_CASES ?= 10000
SOAK_ROUNDS ?= 500
# Flags for every `weft bench`; `--quick` ends each within a minute.
BENCH_FLAGS ?= --quick

# A Rust that rustup put into the user's home is found even by a shell that has not heard of it.
export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)

target := $(or $(CARGO_TARGET_DIR),target)
weft := $(target)/release/weft
# Optimised for what is executed most (profile/README.md). All of a release is built with the same flags, or it would be
# built anew each time.
release := RUSTFLAGS="$$(scripts/release-flags.sh)" cargo build --release --locked
libraries := $(target)/release/libweftflow.so $(target)/release/libweftxia.so
benches := config fib flow link-state restart route-latency route-load route-origins route-peers route-storm routing xip-attack xip-engine xip-forward xia-push xrl zfilter

.DEFAULT_GOAL := help
.PHONY: help build demo test lint bench fuzz soak profile docs install clean

help: ## Show this list.
	@echo "weft: one router and host stack for many Internet architectures"
	@echo
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

bootstrap-%:
	@scripts/bootstrap.sh $(subst -, ,$*)

# By themselves, since libraries need machine code of what the binary needs for its optimisation as a whole: asked for
# together, everything would be compiled once more for `make demo`.
build: bootstrap-build ## Build the weft binary and the C libraries (release).
	$(release) -p weft
	$(release) -p weft-flow-c -p weft-xia-c

demo: bootstrap-build-demo ## Push a file to four receivers across XIA and IP networks (FILE=path).
	$(release) -p weft
	$(weft) demo $(if $(FILE),--file '$(FILE)')

test: bootstrap-build-fuzz-test ## Run lints, all tests and the documentation build.
	@scripts/test.sh

lint: bootstrap-build ## Check formatting and lints only.
	@scripts/test.sh lint

bench: bootstrap-bench-build ## Measure (BENCH_FLAGS=, default --quick).
	$(release) -p weft -p weft-bench-grpc
	@mkdir -p $(target)/bench
	@for name in $(benches); do \
		$(weft) bench $$name $(BENCH_FLAGS) --json $(target)/bench/$$name.json || exit 1; \
	done

fuzz: bootstrap-build-fuzz ## Fuzz every decoder, or FUZZ_TARGETS=, for FUZZ_SECONDS (default 600) and record the result.
	@scripts/fuzz-all.sh $(FUZZ_SECONDS) $(FUZZ_TARGETS)

soak: bootstrap-build-test ## Run the long tests (SOAK_CASES=, SOAK_ROUNDS=) and record the result.
	@scripts/soak.sh $(SOAK_CASES) $(SOAK_ROUNDS)

profile: bootstrap-bench-build ## Find out by benchmarks what is executed most, for release builds (root; 20 minutes).
	@scripts/profile.sh

docs: bootstrap-build ## Build the API documentation and, with mdbook, the book.
	@scripts/test.sh docs
	@command -v mdbook >/dev/null || echo "the book needs mdbook: cargo install mdbook --locked, then make docs"

$(weft) $(libraries) &:
	@$(MAKE) --no-print-directory build

install: $(weft) $(libraries) ## Install binary, C libraries, manual pages, units, examples (PREFIX=, DESTDIR=).
	install -D -m 755 $(weft) '$(DESTDIR)$(PREFIX)/bin/weft'
	install -d '$(DESTDIR)$(PREFIX)/lib' '$(DESTDIR)$(PREFIX)/include'
	install -m 755 $(libraries) '$(DESTDIR)$(PREFIX)/lib/'
	install -m 644 $(libraries:.so=.a) '$(DESTDIR)$(PREFIX)/lib/'
	install -m 644 bindings/c/weft_flow.h xia/c/weft_xia.h '$(DESTDIR)$(PREFIX)/include/'
	install -d '$(DESTDIR)$(PREFIX)/share/man/man1'
	$(weft) man '$(DESTDIR)$(PREFIX)/share/man/man1'
	install -d '$(DESTDIR)$(PREFIX)/share/bash-completion/completions' \
		'$(DESTDIR)$(PREFIX)/share/zsh/site-functions' '$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d'
	$(weft) completion bash > '$(DESTDIR)$(PREFIX)/share/bash-completion/completions/weft'
	$(weft) completion zsh > '$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_weft'
	$(weft) completion fish > '$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/weft.fish'
	install -d '$(DESTDIR)$(PREFIX)/lib/systemd/system'
	for unit in packaging/systemd/*.service; do \
		sed 's|@BINDIR@|$(PREFIX)/bin|' "$$unit" > "$(DESTDIR)$(PREFIX)/lib/systemd/system/$${unit##*/}" || exit 1; \
	done
	install -d '$(DESTDIR)$(PREFIX)/share/weft/examples' '$(DESTDIR)$(PREFIX)/share/doc/weft'
	cp -R examples/. '$(DESTDIR)$(PREFIX)/share/weft/examples/'
	install -m 644 README.md CHANGELOG.md GLOSSARY.md LICENSE-APACHE LICENSE-MIT '$(DESTDIR)$(PREFIX)/share/doc/weft/'

clean: ## Remove everything that was built.
	if command -v cargo >/dev/null; then cargo clean; else rm -rf '$(target)'; fi
	rm -rf fuzz/target docs/book
