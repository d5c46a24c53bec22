# make demo    an image set, a training run, its tables and its page, from nothing, in a few minutes
# make test    every test          make check   lint, format and types
# make bench   the figures of benchmarks/, each as a ratio within one run; half an hour
# make bench-truth   is it true: planted delays and stages, XProf's figures, layers run alone
# make bench-pipeline   the input pipeline against tf.data by hand, its sources, what measuring costs
# make bench-augmentation   augmentation against Keras and Pillow, the model over a grid; 40 minutes
# make soak    kill -9 at random moments, and damaged traces, for a quarter of an hour

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: demo test check bench bench-truth bench-pipeline bench-augmentation soak clean

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Timesink needs Python 3.11 or newer: make PYTHON=python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[cpu,dev]'
	@touch $@

demo: $(READY)
	@$(BIN)/timesink dataset make demo/images --classes 5 --images 96 --validation-images 24
	@$(BIN)/timesink run demo.toml --out demo/run --force
	@$(BIN)/timesink report demo/run --force

test: $(READY)
	@$(BIN)/python tests/need_sshd.py
	@$(BIN)/python tests/need_chromium.py
	$(BIN)/python -m pytest -n auto

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python benchmarks/step_overhead.py
	$(BIN)/python benchmarks/ledger_closure.py
	$(BIN)/python benchmarks/own_cost.py
	$(BIN)/python benchmarks/trace_speed.py
	$(BIN)/python benchmarks/report_speed.py

bench-truth: $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	$(BIN)/python benchmarks/planted_delays.py
	$(BIN)/python benchmarks/planted_stages.py
	$(BIN)/python benchmarks/against_xprof.py
	$(BIN)/python benchmarks/isolation.py
	$(BIN)/python benchmarks/isolation.py --threads 1

bench-pipeline: $(READY)
	$(BIN)/python benchmarks/pipeline_cost.py
	$(BIN)/python benchmarks/source_pixels.py
	$(BIN)/python benchmarks/pipeline_speed.py

bench-augmentation: $(READY)
	$(BIN)/python benchmarks/augmentation_speed.py
	$(BIN)/python benchmarks/augmentation_model.py

soak: $(READY)
	$(BIN)/python -m pytest -m soak -o timeout=0 tests/soak

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache demo
