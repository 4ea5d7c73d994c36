# The two commands are `make gate` and `make test`; README.md explains them. Everything lies in .venv, .cache and
# ${XDG_CACHE_HOME:-~/.cache}/runtime_gate; nothing is installed anywhere else.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := $(CURDIR)/.venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Shims of version managers on PATH mislead ansible's search for interpreters and ansible-test.
export PATH := $(BIN):$(shell printf %s "$$PATH" | tr : '\n' | grep -v /shims | paste -sd: -)
export ANSIBLE_LOCALHOST_WARNING := False
export ANSIBLE_INVENTORY_UNPARSED_WARNING := False

# Pairs of the differential test; the full size is make differential N=10000.
N ?= 300
# Seconds of make fuzz, for all parsers together.
TIME ?= 120
# The container runtime of differential, matrix and faults: containerd or crio.
ENGINE ?= containerd
# The whole matrix and every fault take about half an hour each: make matrix MATRIX= and make faults FAULTS=
MATRIX ?= --slice $(if $(filter crio,$(ENGINE)),,--lines 1.7,2.1,2.4)
# The same by ansible-playbook, which takes ten times as long a cell.
MATRIX_PLAYBOOKS ?= --lines 1.7,2.3 --roots kubespray --declarations default --foreign
FAULTS ?= --slice $(if $(filter crio,$(ENGINE)),40,12)
COMBINATIONS ?= 1020
# Those of tests/integration that are about playbooks more than about the daemon below them.
PLAYBOOK_TESTS := $(addprefix tests/integration/test_,cores.py gate*.py make_gate.py readme_*.py *rollout*.py collection_build.py cluster_reading.py)
# Of make bench: 1 is the size that the goals are for.
SIZE ?= 1
CLUSTER_SLICE := --slice --lines 1.7,2.1 --combinations 136

.PHONY: bench docs release-check release-slice help gate test unit cases catalogue differential differential-crio fuzz real-daemons playbooks matrix matrix-crio faults faults-crio cluster-test cluster-slice prediction walkthrough page sanity lint clean venv molecule molecule-slice molecule-mutations

help:
	@echo 'make gate          audit of the embedded example cluster'
	@echo 'make gate INVENTORY=hosts.yml [KUBECONFIG=…] [LIMIT=…] [CHECK=1] [ARGS="-K -u ops"]'
	@echo '                   audit of real nodes; ends non-zero when a host fails'
	@echo 'make test          every kind of test'
	@echo 'make unit | cases | catalogue | differential N=10000 [ENGINE=crio] | real-daemons | playbooks | matrix | faults | sanity | lint'
	@echo 'make fuzz TIME=600 damaged bytes into every parser of foreign bytes; the unit tests have a slice of it'
	@echo 'make molecule [SCENARIO=default]      whole hosts with systemd; make molecule-slice is what make test runs of it'
	@echo 'make cluster-test  the cluster side: a real control plane, real nodes with real pods, and the prediction matrix (make prediction: alone)'
	@echo 'make walkthrough   the lab of docs/walkthrough.md, into ./gpurt'
	@echo 'make docs          the documentation site, into .cache/docs/html; fails on a broken link or command'
	@echo 'make release-check the tarball that a release would be, built, installed without network, run and checked'
	@echo 'make bench [SIZE=0.1] [ROWS="facts audit"]   what it costs, into docs/bench.md; some hours at the full size'
	@echo 'make clean         removes .venv and .cache'

venv: $(READY)

$(READY): tests/requirements.txt tests/constraints.txt
	@[ -x $(BIN)/python ] || { python=$$(tests/find_python.sh) && "$$python" -m venv $(VENV); }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r tests/requirements.txt -c tests/constraints.txt
	@# The checkout is an installed collection of this environment: its playbooks and ansible-doc work from any directory.
	@collections=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/ansible_collections/kubenode; \
	  mkdir -p "$$collections" && ln -sfn $(CURDIR) "$$collections/runtime_gate"
	@touch $@

gate: $(READY)
	@EXAMPLE='$(EXAMPLE)' INVENTORY='$(INVENTORY)' KUBECONFIG='$(KUBECONFIG)' LIMIT='$(LIMIT)' CHECK='$(CHECK)' tests/gate.sh $(ARGS)

test: $(READY)
	@tests/system_packages.sh
	@# Built here once, and not by whichever test asks first: a test's own time-out is not made for a compiler.
	$(BIN)/python -m tests.testbed.tools fetch all
	@# Three at a time on two cores, since real clusters and whole hosts mostly wait; the longest first.
	@tests/run_all.sh 3 playbooks real-daemons molecule-slice catalogue unit cluster-slice walkthrough sanity matrix faults lint page \
	  faults-crio cases matrix-crio differential-crio differential

unit: $(READY)
	@mkdir -p .cache/coverage
	$(BIN)/python -m coverage run --rcfile tests/coverage.ini -m pytest tests/unit
	$(BIN)/python -m coverage report --rcfile tests/coverage.ini --fail-under=95

cases: $(READY)
	$(BIN)/python -m tests.cases_runner

catalogue: $(READY)
	$(BIN)/python -m tests.catalogue
	$(BIN)/python -m tests.catalogue.crio

differential: $(READY)
	$(BIN)/python -m tests.differential --engine $(ENGINE) --pairs $(N)

differential-crio: $(READY)
	$(BIN)/python -m tests.differential --engine crio --pairs 20

fuzz: $(READY)
	$(BIN)/python -m tests.fuzz --time $(TIME)

real-daemons: $(READY)
	$(BIN)/python -m pytest tests/integration $(PLAYBOOK_TESTS:%=--ignore-glob=$(CURDIR)/%)

playbooks: $(READY)
	$(BIN)/python -m pytest $(sort $(wildcard $(PLAYBOOK_TESTS)))

matrix: $(READY)
	$(BIN)/python -m tests.matrix$(if $(filter crio,$(ENGINE)),.crio) $(MATRIX)
	$(if $(filter crio,$(ENGINE)),,$(BIN)/python -m tests.matrix --playbooks $(MATRIX_PLAYBOOKS))

matrix-crio: $(READY)
	@$(MAKE) --no-print-directory matrix ENGINE=crio

faults: $(READY)
	$(BIN)/python -m tests.faults --engine $(ENGINE) $(FAULTS)

faults-crio: $(READY)
	@$(MAKE) --no-print-directory faults ENGINE=crio

# Several hosts, each with systemd and a containerd of another line; SCENARIO= names one or more, else all.
molecule: $(READY)
	@tests/molecule.sh $(SCENARIO)

molecule-slice: $(READY)
	@tests/molecule.sh --slice default audit

# Products that are wrong on purpose must turn the scenario default red.
molecule-mutations: $(READY)
	$(BIN)/python -m tests.hosts.mutations

# A real control plane, real kubelets on real containerds; at most two of the release lines in the slice that make test runs.
cluster-test: $(READY)
	$(BIN)/python -m pytest tests/cluster

cluster-slice: $(READY)
	$(BIN)/python -m pytest tests/cluster $(CLUSTER_SLICE)

prediction: $(READY)
	$(BIN)/python -m pytest tests/cluster/test_prediction.py --combinations $(COMBINATIONS)

# The lab, twice in a row; what it writes is kept in ./gpurt.
walkthrough: $(READY)
	$(BIN)/python -m tests.walkthrough

# The report's page in a real Chromium.
page: $(READY)
	$(BIN)/python -m pytest tests/page

# What the collection costs beside what it cannot do without. A run of some rows alone is printed and not kept.
bench: $(READY)
	$(BIN)/python -m tests.bench --scale $(SIZE) $(if $(ROWS),$(ROWS),--output docs/bench.md)

sanity: $(READY)
	@tests/sanity.sh

# The documentation site, in .cache/docs/html; a broken link or a broken command fails it.
docs: $(READY)
	$(BIN)/python -m pytest tests/docs
	$(BIN)/python -m tests.docs

# What a release will be: the tarball with its changelog, installed without network and run, and checked as Galaxy does.
release-check: $(READY)
	$(BIN)/python -m pytest tests/release
	$(BIN)/python -m tests.release

# The same where make lint, which holds all of the checkout to the same profile, is run besides.
release-slice: $(READY)
	$(BIN)/python -m pytest tests/release
	$(BIN)/python -m tests.release --but ansible-lint

lint: $(READY)
	$(BIN)/ansible-lint
	$(BIN)/ruff check plugins tests
	$(BIN)/antsibull-changelog lint
	shellcheck roles/gate/files/rc-crosscheck.sh tests/*.sh .ci/run

clean:
	rm -rf .venv .cache
