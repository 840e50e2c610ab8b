# Every target works alone on a machine with git, make and Python >= 3.11.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PACKAGING := setup.cfg pyproject.toml constraints.txt
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
PDFLATEX ?= pdflatex
BOOK_PACKAGES := texlive-latex-base texlive-latex-recommended lmodern
BOOK_OUT ?= results

.PHONY: run test venv figures derive bench book clean

run: $(VENV)/core.stamp        ## the main job with the core alone: derive, map, draw, summarise
	$(BIN)/python -m landscape.derive --out results
	$(BIN)/python -m landscape.tour results

test: $(VENV)/all.stamp        ## every test that is not marked slow or benchmark; they check the derivations too
	$(BIN)/python -m pytest -m "not slow and not benchmark"

venv: $(VENV)/all.stamp        ## everything, torch included

figures: $(VENV)/core.stamp    ## redraw the committed figures
	$(BIN)/landscape figures --out figures

derive: $(VENV)/core.stamp     ## rewrite derivations/ and the generated kernels
	$(BIN)/python -m landscape.derive

bench: $(VENV)/all.stamp       ## the opt-in benchmarks
	$(BIN)/python -m pytest -s -m benchmark tests/benchmarks

book:                          ## results/book.pdf, all derivations as one document (opt-in: needs LaTeX)
	@command -v $(PDFLATEX) >/dev/null && kpsewhich lmodern.sty microtype.sty booktabs.sty >/dev/null || \
	{ echo "make book needs LaTeX: apt-get install --no-install-recommends $(BOOK_PACKAGES)" >&2; exit 1; }
	@mkdir -p "$(BOOK_OUT)" && out=$$(cd "$(BOOK_OUT)" && pwd) && cd derivations && for pass in 1 2 3; do \
	max_print_line=1000 $(PDFLATEX) -halt-on-error -interaction=batchmode -output-directory="$$out" book.tex >/dev/null || \
	{ echo "LaTeX failed: see $$out/book.log" >&2; exit 1; }; done; echo "$$out/book.pdf"

clean:
	rm -rf $(VENV) results build dist *.egg-info

$(VENV)/core.stamp: $(PACKAGING)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) -e .
	touch $@

$(VENV)/all.stamp: $(VENV)/core.stamp
	$(INSTALL) -e ".[all]"
	touch $@
