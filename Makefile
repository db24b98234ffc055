# Everything from a fresh clone: each target makes the virtual environment it needs.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
CORE = $(wildcard src/prodige/_core/*)

.PHONY: demo test pytest search test-minimum repeat browser lint docs gallery core-test sanitize asan tsan bench clean

demo: $(VENV)/installed
	$(BIN)/python examples/digits_compression.py

test: core-test pytest

# One worker for each processor, with one thread of linear algebra each: they would only wait for each other.
pytest: $(VENV)/installed browser
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist worksteal

# New examples for every property, more of them than usual. What is found becomes a test of its own.
search: $(VENV)/installed
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist worksteal -m hypothesis --hypothesis-profile search tests

# What compares results again, with other kernels of torch and of the core; those of the core have the same bits.
repeat: $(VENV)/installed
	OMP_NUM_THREADS=1 ATEN_CPU_CAPABILITY=default PRODIGE_CPU_CAPABILITY=default $(BIN)/python -m pytest \
		--numprocesses auto --dist worksteal -m repeatable $$(grep --recursive --files-with-matches \
		--include 'test_*.py' mark.repeatable tests)
	$(BIN)/python tools/digests.py > build/digests & \
		PRODIGE_CPU_CAPABILITY=default $(BIN)/python tools/digests.py > build/digests-default && wait $$!
	diff build/digests build/digests-default

# The lowest versions of everything that pyproject.toml allows, of Python as well. Older torch brings gigabytes with it,
# and keeps an idle thread of a pool of its own once its number of threads was set, so that one test is left out.
# Old packages may warn of what newer ones drop; and one example draws with a newer scikit-learn than the library needs.
MINIMUM_PYTHON ?= python3.11
MINIMUM = build/minimum
test-minimum:
	test -x $(MINIMUM)/bin/python || $(MINIMUM_PYTHON) -m venv $(MINIMUM)
	$(MINIMUM)/bin/python tools/floors.py > $(MINIMUM)/constraints.txt
	$(MINIMUM)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(MINIMUM)/constraints.txt --editable '.[test,docs]'
	OMP_NUM_THREADS=1 $(MINIMUM)/bin/python -m pytest --numprocesses auto --dist worksteal -m 'not browser' \
		-W ignore::DeprecationWarning -W ignore::FutureWarning --deselect 'tests/test_examples.py::test_runs_and_draws[words]' \
		--deselect tests/compression/test_compressor.py::test_one_job_starts_no_threads

browser:
	@tools/browser.sh

lint: $(VENV)/installed
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/clang-format --dry-run --Werror $(wildcard src/prodige/_core/*.[ch]pp tests/_core/*.[ch]pp)
	$(BIN)/mypy
	$(BIN)/lint-imports

# The site, into build/site; a link that leads nowhere is an error.
docs: $(VENV)/installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The pictures and notebooks of the gallery, and a picture of the viewer.
gallery: $(VENV)/installed browser
	$(BIN)/python tools/gallery.py
	$(BIN)/python tools/screenshot.py

# The core without Python, plain and under the sanitizers. The plain one is that of the last installation, which is the
# newest there is.
core-test: $(VENV)/installed
	$(BIN)/cmake -S . -B build/core -DCMAKE_MESSAGE_LOG_LEVEL=WARNING \
		-DPRODIGE_CORE="$$(ls -t $(CURDIR)/build/cp*/libprodige_core.a | head -n 1)"
	$(BIN)/cmake --build build/core --parallel 2 --target core_tests
	build/core/core_tests

# Side by side, so that no processor waits for the last file of the other.
sanitize: $(VENV)/installed
	$(MAKE) --jobs 2 asan tsan

asan: $(VENV)/installed
	$(BIN)/cmake -S . -B build/asan -DPRODIGE_SANITIZE=address,undefined -DCMAKE_MESSAGE_LOG_LEVEL=WARNING
	$(BIN)/cmake --build build/asan --parallel 2
	build/asan/core_tests

# setarch -R: ThreadSanitizer cannot map its shadow memory where the kernel randomises addresses too widely.
tsan: $(VENV)/installed
	$(BIN)/cmake -S . -B build/tsan -DPRODIGE_SANITIZE=thread -DCMAKE_MESSAGE_LOG_LEVEL=WARNING
	$(BIN)/cmake --build build/tsan --parallel 2
	setarch -R build/tsan/core_tests

bench: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt igraph networkit rustworkx
	$(BIN)/python benchmarks/search.py

$(VENV)/installed: pyproject.toml constraints.txt CMakeLists.txt $(CORE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf build $(VENV)
