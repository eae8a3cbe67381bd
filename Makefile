# SPDX-License-Identifier: Apache-2.0
# headroom: everything is built under build/; `make help` lists the targets; V=1 shows commands.

MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
.SUFFIXES:
SHELL := /bin/bash

Q := $(if $(V),,@)
# [12/87], where the number of steps is known: tools/build-with-progress.
say = $(if $(V),,@$(if $(TOTAL),echo >> $(B)/.steps; printf '  [%d/%d] %-8s %s\n' "$$(wc -l < $(B)/.steps)" $(TOTAL) $(1) $(2),\
  printf '  %-8s %s\n' $(1) $(2)))
# A step of the build: what it says, or in one line that the disk is full.
STEP = tools/build-step $@

include mk/arch.mk
B := $(if $(CROSS),build/$(ARCH),build)
# ccache, where there is one, makes a fresh clone's build cheap: paths inside the tree are relative to it.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
export CCACHE_SLOPPINESS := time_macros,pch_defines
# A precompiled header is known by what went into it: the file itself has this tree's path in it.
export CCACHE_PCH_EXTSUM := 1
CCACHE := $(shell command -v ccache)
# The builder's: CXX CPPFLAGS CXXFLAGS LDFLAGS, from the environment or the command line, are for the programs. The BPF
# programs are CLANG's; the tests are clang++'s with flags of their own. There is no C for the host: CC is not used.
ifeq ($(origin CXX),default)
CXX := $(CROSS)g++
endif
COMPILE = $(if $(findstring ccache,$(CXX)),,$(CCACHE) )$(CXX)
CLANG ?= clang
CLANGXX ?= clang++
BPFTOOL := $(shell PATH=$$PATH:/usr/sbin command -v bpftool)
PREFIX ?= /usr
VERSION := 0.1.0

PACKAGES := libbpf libsystemd libmicrohttpd prometheus-cpp-core spdlog yaml-cpp
# -isystem: warnings are errors only in our code.
PKG_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(PACKAGES) 2>/dev/null | sed 's/-I/-isystem /g')
PKG_LIBS := $(shell $(PKG_CONFIG) --libs $(PACKAGES) 2>/dev/null)
# The sysroot's own folder is searched last, as /usr/include is.
PKG_CFLAGS := $(subst -isystem $(SYSROOT)/usr/include ,,$(PKG_CFLAGS) )
# The programs take in the libraries whose names change from one Debian to the next: yaml-cpp here, fmt and spdlog by
# spdlog_instances.cc. SHARED=1 links the distribution's own instead: its packages do.
SHARED ?=
INSTANCES := userspace/base/log/spdlog_instances.cc
ifeq ($(SHARED),)
PKG_CFLAGS := $(filter-out -DSPDLOG_SHARED_LIB,$(PKG_CFLAGS))
PKG_LIBS := $(patsubst -lyaml-cpp,-l:libyaml-cpp.a,$(filter-out -lspdlog -lfmt,$(PKG_LIBS)))
endif

# WERROR=1: a warning is an error. CI and the tests say so; a compiler newer than ours may know more warnings.
WERROR ?=
WARN := -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor
STRICT = $(if $(WERROR),-Werror)
# What a file was compiled from is named relative to the tree: the same commit gives the same bytes in any folder.
RELATIVE := -ffile-prefix-map=$(CURDIR)=.
LANGUAGE := -std=c++20 $(WARN) -Iinclude -Iuserspace -I$(B)/bpf -I$(B)/page -pthread -DHEADROOM_VERSION='"$(VERSION)"' -MMD -MP
# Hardened, where the builder does not choose a value of its own.
HARDEN_CPP = $(if $(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CXXFLAGS)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
HARDEN_CXX := -fPIE -fstack-protector-strong -fstack-clash-protection $(if $(filter amd64,$(ARCH)),-fcf-protection,-mbranch-protection=standard)
# -fPIE again: blhc asks for it where -pie is.
HARDEN_LD := -fPIE -pie -Wl,-z,relro,-z,now
# Of a batch a program takes only what it calls.
HARDEN_CXX += -ffunction-sections -fdata-sections
HARDEN_LD += -Wl,--gc-sections -Wl,--as-needed
# Not the builder's: what runs once, for a person or at a start or reload, need not be fast.
OPTIMIZE := -O2
ifeq ($(origin CXXFLAGS),undefined)
CXXFLAGS = -g1 $(OPTIMIZE)
endif
ALL_CXXFLAGS = $(SYSROOT_FLAG) $(LANGUAGE) $(STRICT) $(RELATIVE) $(HARDEN_CPP) $(HARDEN_CXX) $(PKG_CFLAGS) $(CPPFLAGS) $(CXXFLAGS)
LDLIBS = $(PKG_LIBS) -pthread
# Under qemu-user there are no sanitizers. The tests are clang's: on what is mostly headers it needs a quarter of g++'s time to put the sanitizers in.
SANITIZE := $(if $(CROSS),,-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
TESTFLAGS = $(CLANG_TARGET) $(LANGUAGE) $(STRICT) $(RELATIVE) -Wno-sign-conversion -g1 -O0 $(PKG_CFLAGS) -Itests

# --- what there is ---------------------------------------------------------------------------
BPF_SRC  := $(wildcard bpf/*.bpf.c)
BPF_SKEL := $(BPF_SRC:bpf/%.bpf.c=$(B)/bpf/%.skel.h)
TEST_BPF_SKEL := $(patsubst tests/bpf/%.bpf.c,$(B)/bpf/%.skel.h,$(wildcard tests/bpf/*.bpf.c))
# Nothing is intermediate: what was built once is not built again.
.SECONDARY:
# main.cc files are the programs; everything else is the library all of them share.
MAINS    := userspace/daemon/main.cc userspace/ctl/main.cc userspace/kube/main.cc userspace/commands/main.cc
LIB_SRC  := $(filter-out $(MAINS) $(if $(SHARED),$(INSTANCES)),$(shell find userspace -name '*.cc' | sort))
VECTOR_SRC := $(wildcard tests/judge/vectors/*.cc tests/judge/vectors/*/*.cc)
SUPPORT_SRC := $(wildcard tests/support/*.cc)
UNIT_SRC := $(filter-out $(VECTOR_SRC) $(SUPPORT_SRC) tests/bpf/% tests/vm/% tests/fuzz/%,$(shell find tests -name '*.cc' | sort))
# What the vectors test: the judge and the checkpoints' formats. Each is a question to a pure function.
VECTOR_LIB = $(if $(BATCH),$(filter $(B)/batch/judge-%,$(BATCHES)),$(filter userspace/judge/%,$(LIB_SRC))) \
             userspace/act/cpus/cpu_checkpoint.cc userspace/act/memory/memory_checkpoint.cc userspace/base/atomic_file.cc userspace/base/json_text.cc
# With it the soak of writes, which needs the controllers of memory and CPU sets.
BPFT_SRC := $(wildcard tests/bpf/*.cc) tests/act/write_soak_test.cc $(SUPPORT_SRC)
BENCH_SRC := $(wildcard bench/*.cc)
FUZZ_SRC := $(wildcard tests/fuzz/*.cc)
# The parsers: what the fuzzers watch. All else that they call is of the unit tests' library.
FUZZ_LIB := $(filter userspace/config/% userspace/manifest/% userspace/recording/% userspace/ctl/evictions/%,$(LIB_SRC)) \
            $(wildcard userspace/judge/resources/*.cc userspace/judge/admission/*.cc userspace/judge/allocatable/cgroup/*.cc) \
            userspace/judge/cpuset/topology/cpu_set.cc userspace/base/human_readable.cc userspace/base/mountinfo.cc \
            userspace/act/cpus/cpu_checkpoint.cc userspace/act/memory/memory_checkpoint.cc userspace/act/original_values.cc \
            userspace/daemon/state/eviction_state.cc userspace/daemon/state/unversioned_state.cc \
            userspace/observe/cgroup/stat_text.cc userspace/observe/pod/pod_cgroup_path.cc userspace/observe/pod/oci_bundle.cc \
            userspace/kube/kubelet/pod_list.cc userspace/kube/kubelet/pod_directory.cc \
            userspace/kube/api/api_response.cc userspace/kube/api/server_version.cc \
            userspace/kube/extender/extender_request.cc userspace/kube/scheduling/node_summary.cc userspace/act/exec/command_message.cc \
            userspace/report/page/page_router.cc \
            userspace/kube/api/eviction_queue.cc userspace/kube/api/pending_eviction.cc userspace/kube/scheduling/node_signals.cc \
            userspace/kube/scheduling/scheduling_sync.cc userspace/base/state/checked_json.cc userspace/judge/forecast/peak_forecast.cc \
            userspace/ctl/changes_command.cc userspace/ctl/common/status_document.cc userspace/ctl/status/kubernetes_lines.cc \
            userspace/ctl/top/top_settings.cc userspace/ctl/watch/event_cursor.cc

# A small file costs what its headers cost: files are compiled as a few batches, each of which reads its headers once. A program
# links with the libraries of every batch that it takes from, so folders share batches by what they link. BATCH= compiles each
# file alone.
BATCH ?= 1
GROUPS := --group daemon=act,daemon,observe --group shared=base,recording,report,simulate
ifneq ($(BATCH),)
include $(B)/batch/batches.mk $(B)/batch-tests/batches.mk $(B)/batch-vectors/batches.mk
endif
$(B)/batch/batches.mk: tools/batch-sources $(LIB_SRC)
	@tools/build-step $@ tools/batch-sources --out $(@D) --files 32 --lines 2500 $(GROUPS) $(LIB_SRC)
$(B)/batch-tests/batches.mk: tools/batch-sources $(UNIT_SRC)
	@tools/build-step $@ tools/batch-sources --out $(@D) --files 32 --lines 2500 --name TEST_BATCHES --group tests $(UNIT_SRC)
$(B)/batch-vectors/batches.mk: tools/batch-sources $(VECTOR_SRC)
	@tools/build-step $@ tools/batch-sources --out $(@D) --files 12 --lines 1000 --name VECTOR_BATCHES $(VECTOR_SRC)
LIB_UNITS = $(if $(BATCH),$(BATCHES),$(LIB_SRC))
UNIT_UNITS = $(if $(BATCH),$(TEST_BATCHES),$(UNIT_SRC))
VECTOR_UNITS = $(if $(BATCH),$(VECTOR_BATCHES),$(VECTOR_SRC))

obj  = $(patsubst %.cc,$(B)/obj/%.o,$(patsubst $(B)/%,%,$(1)))
aobj = $(patsubst %.cc,$(B)/asan/%.o,$(patsubst $(B)/%,%,$(1)))

PROGRAMS := $(B)/headroomd $(B)/headroomctl $(B)/headroom-kube $(B)/headroom-commands
BENCHES  := $(BENCH_SRC:bench/%.cc=$(B)/bench/%)

.PHONY: help all programs
.DEFAULT_GOAL := programs
help: ## list the targets
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | \
	  awk -F'\t' '{printf "  make %-14s %s\n", $$1, $$2}'

all: $(PROGRAMS) ## build headroomd, headroomctl, headroom-kube and headroom-commands
programs: ## the same on every CPU, with progress: what `make` alone does
	$(progress) all

# --- what building needs --------------------------------------------------------------------
# One line for the first thing that is missing, before anything is built.
need = $(if $(shell PATH=$$PATH:/usr/sbin command -v $(1)),,$(error headroom: $(1) is not found: install $(2), or run make deps as root))
.PHONY: tools-ready
tools-ready:
	$(call supported)
	$(call need,$(firstword $(filter-out %ccache,$(CXX))),a C++20 compiler such as g++)
	$(call need,$(CLANG),clang)
	$(call need,llvm-strip,llvm)
	$(call need,bpftool,bpftool)
	$(call need,pkg-config,pkg-config)
	$(if $(shell $(PKG_CONFIG) --exists $(PACKAGES) ncursesw || echo no),$(error headroom: pkg-config does not find all of $(PACKAGES) ncursesw: \
	  run $(if $(CROSS),make sysroot ARCH=$(ARCH),make deps as root)))

# --- BPF -------------------------------------------------------------------------------------
define compile_bpf
	$(call say,BPF,$<)
	@mkdir -p $(@D)
	$(Q)$(STEP) $(CLANG) -target bpf -D__BPF__ -D__TARGET_ARCH_$(BPF_ARCH) -mcpu=v3 -g -O2 -Wall $(STRICT) -Iinclude -Ibpf $(RELATIVE) \
	  -MMD -MP -MT $@ -MF $(@:.o=.d) -c $< -o $@
endef
$(B)/bpf/%.bpf.o: bpf/%.bpf.c | tools-ready
	$(compile_bpf)
$(B)/bpf/%.bpf.o: tests/bpf/%.bpf.c | tools-ready
	$(compile_bpf)

# Without DWARF, which BPF loaders do not read: BTF says what they need.
$(B)/bpf/%.skel.h: $(B)/bpf/%.bpf.o
	$(Q)$(STEP) llvm-strip -g $< -o $(@:.skel.h=.stripped.o)
	$(Q)$(STEP) bash -c '$(BPFTOOL) gen skeleton $(@:.skel.h=.stripped.o) name $*_bpf > $@ && tail -n1 $@ | grep -q endif || \
	  { echo "write $@: No space left on device" >&2; exit 1; }'

# --- the page --------------------------------------------------------------------------------
PAGE := userspace/report/page
WEB := $(PAGE)/web
$(B)/page/page.inc: $(WEB)/assemble $(wildcard $(WEB)/*.html $(WEB)/*.css $(WEB)/*.js)
	$(call say,PAGE,$@)
	@mkdir -p $(@D)
	$(Q)$(STEP) $(WEB)/assemble $(@D)

# --- C++ -------------------------------------------------------------------------------------
GENERATED := $(BPF_SKEL) $(B)/page/page.inc
compile = $(COMPILE) $(ALL_CXXFLAGS)
$(B)/obj/%.o: %.cc | tools-ready $(GENERATED)
	$(call say,CXX,$<)
	@mkdir -p $(@D)
	$(Q)$(STEP) $(compile) -c $< -o $@
# A type of a .cc file may have a member of a type that is that file's own: g++ takes every included file for a header.
$(B)/obj/batch/%.o: $(B)/batch/%.cc | tools-ready $(GENERATED)
	$(call say,CXX,$<)
	@mkdir -p $(@D)
	$(Q)$(STEP) $(compile) -I. -Wno-subobject-linkage -c $< -o $@
$(B)/batch/%.cc: $(B)/batch/batches.mk ;
$(B)/batch-tests/%.cc: $(B)/batch-tests/batches.mk ;
$(B)/batch-vectors/%.cc: $(B)/batch-vectors/batches.mk ;
$(foreach part,ctl config kube manifest,$(B)/obj/userspace/$(part)/%.o) $(foreach batch,ctl config kube manifest,$(B)/obj/batch/$(batch)-%.o): OPTIMIZE := -O1

# The sanitizers are in the library that is tested, not in the tests' own tables.
asan_library = $(CCACHE) $(CLANGXX) $(TESTFLAGS) $(SANITIZE) -include-pch $(B)/asan/userspace.pch -I. -c $< -o $@
asan_tests = $(CCACHE) $(CLANGXX) $(TESTFLAGS) -include-pch $(B)/asan/tests.pch -I. -c $< -o $@
$(B)/asan/%.o: %.cc $(B)/asan/userspace.pch | $(GENERATED)
	$(call say,CXX-asan,$<)
	@mkdir -p $(@D)
	$(Q)$(STEP) $(asan_library)
# An alias that two files of a batch say alike, one of them in an unnamed namespace, is a shadow to clang.
$(B)/asan/batch/%.o: $(B)/batch/%.cc $(B)/asan/userspace.pch | $(GENERATED)
	$(call say,CXX-asan,$<)
	@mkdir -p $(@D)
	$(Q)$(STEP) $(asan_library) -Wno-shadow
$(B)/asan/tests/%.o: tests/%.cc $(B)/asan/tests.pch | $(BPF_SKEL) $(TEST_BPF_SKEL)
	$(call say,CXX-test,$<)
	@mkdir -p $(@D)
	$(Q)$(STEP) $(asan_tests)
$(B)/asan/batch-%.o: $(B)/batch-%.cc $(B)/asan/tests.pch | $(BPF_SKEL)
	$(call say,CXX-test,$<)
	@mkdir -p $(@D)
	$(Q)$(STEP) $(asan_tests)

# What most files read first, and the tests' framework: read once.
$(B)/asan/userspace.pch: TESTFLAGS += $(SANITIZE)
# By name: make prefers a rule whose prerequisites are named, so files of tests/ would be compiled as if they were of the library.
$(B)/asan/userspace.pch $(B)/asan/tests.pch: $(B)/asan/%.pch: tests/support/precompiled/%.h
	$(call say,PCH,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANGXX) $(filter-out -MMD -MP,$(TESTFLAGS)) -E -x c++-header $< | sha256sum > $@.sum
	$(Q)$(STEP) $(CLANGXX) $(TESTFLAGS) -MF $(@:.pch=.d) -MT $@ -fpch-instantiate-templates -x c++-header $< -o $@

$(B)/libheadroom.a: $(call obj,$(LIB_UNITS))
	$(Q)rm -f $@ && $(STEP) ar rcsD $@ $^
$(B)/libheadroom-asan.a: $(call aobj,$(LIB_UNITS))
	$(Q)rm -f $@ && $(STEP) ar rcsD $@ $^

$(B)/headroomd: $(B)/obj/userspace/daemon/main.o $(B)/libheadroom.a
$(B)/headroomctl: $(B)/obj/userspace/ctl/main.o $(B)/libheadroom.a
$(B)/headroom-kube: $(B)/obj/userspace/kube/main.o $(B)/libheadroom.a
# It has the privileges that the daemon has not: these files alone, and none of the libraries.
COMMANDS_SRC := userspace/commands/main.cc $(addprefix userspace/act/exec/,command_server.cc command_message.cc child_process.cc credentials.cc)
$(B)/headroom-commands: $(call obj,$(COMMANDS_SRC))
$(B)/headroom-commands: LDLIBS := -pthread
# The network's libraries are this one's alone: the daemon's memory is locked.
$(B)/headroom-kube $(B)/test/unit: LDLIBS += -lcurl -lgnutls
# The terminal's is headroomctl's alone.
CURSES_LIBS := $(shell $(PKG_CONFIG) --libs ncursesw 2>/dev/null)
$(B)/headroomctl $(B)/test/unit: LDLIBS += $(CURSES_LIBS)
$(PROGRAMS):
	$(call say,LINK,$@)
	$(Q)$(STEP) $(CXX) $(SYSROOT_FLAG) $(HARDEN_LD) $(CXXFLAGS) $(LDFLAGS) $^ -o $@ $(LDLIBS)

$(B)/bench/%: $(B)/obj/bench/%.o $(B)/libheadroom.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(STEP) $(CXX) $(SYSROOT_FLAG) $(HARDEN_LD) $(CXXFLAGS) $(LDFLAGS) $^ -o $@ $(LDLIBS) -lbenchmark

$(B)/test/unit: $(call aobj,$(UNIT_UNITS) $(VECTOR_UNITS) $(SUPPORT_SRC)) $(B)/libheadroom-asan.a
$(B)/test/bpf: $(call aobj,$(BPFT_SRC)) $(B)/libheadroom-asan.a | $(TEST_BPF_SKEL)
$(B)/test/vectors: $(call aobj,$(VECTOR_UNITS) $(VECTOR_LIB))
$(B)/test/unit $(B)/test/bpf $(B)/test/vectors:
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(STEP) $(CLANGXX) $(CLANG_TARGET) $(SANITIZE) $^ -o $@ -lgtest_main -lgtest $(LDLIBS) $(CLANG_BUILTINS)

# g++ has no libFuzzer.
FUZZ_FLAGS := -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -w
$(B)/fuzz/obj/%.o: %.cc
	$(call say,CXX-fuzz,$<)
	@mkdir -p $(@D)
	$(Q)$(STEP) $(CCACHE) $(CLANGXX) $(TESTFLAGS) $(FUZZ_FLAGS) -Itests/fuzz -c $< -o $@
$(B)/fuzz/libparsers.a: $(FUZZ_LIB:%.cc=$(B)/fuzz/obj/%.o)
	$(Q)rm -f $@ && $(STEP) ar rcsD $@ $^
FUZZERS := $(FUZZ_SRC:tests/fuzz/%.cc=$(B)/fuzz/%)
# The tests' library has the parsers as well: the first of two definitions is taken, which is the one that the fuzzer watches.
$(B)/fuzz/%: $(B)/fuzz/obj/tests/fuzz/%.o $(B)/fuzz/libparsers.a $(B)/libheadroom-asan.a
	$(call say,LINK,$@)
	$(Q)$(STEP) $(CLANGXX) -fsanitize=fuzzer,address,undefined -Wl,--allow-multiple-definition $^ -o $@ $(LDLIBS) -lcurl -lgnutls $(CURSES_LIBS)

# --- the daemon with ThreadSanitizer -----------------------------------------------------------
# Clang's, whose runtime is linked in: the guest needs no other library. Without _FORTIFY_SOURCE, whose functions it does not see.
TSAN_FLAGS := -O1 -g1 -fsanitize=thread -w
TSAN_UNITS := $(filter-out $(B)/batch/ctl-% $(B)/batch/kube-% userspace/ctl/% userspace/kube/%,$(LIB_UNITS))
tsan_obj = $(patsubst %.cc,$(B)/tsan/obj/%.o,$(patsubst $(B)/%,%,$(1)))
tsan_compile = $(CCACHE) $(CLANGXX) $(LANGUAGE) $(RELATIVE) $(PKG_CFLAGS) $(TSAN_FLAGS) -I.
$(B)/tsan/obj/%.o: %.cc | tools-ready $(GENERATED)
	$(call say,CXX-tsan,$<)
	@mkdir -p $(@D)
	$(Q)$(STEP) $(tsan_compile) -c $< -o $@
$(B)/tsan/obj/batch/%.o: $(B)/batch/%.cc | tools-ready $(GENERATED)
	$(call say,CXX-tsan,$<)
	@mkdir -p $(@D)
	$(Q)$(STEP) $(tsan_compile) -c $< -o $@
$(B)/tsan/headroomd: $(call tsan_obj,userspace/daemon/main.cc $(TSAN_UNITS))
	$(call say,LINK,$@)
	$(Q)$(STEP) $(CLANGXX) -fsanitize=thread $^ -o $@ $(LDLIBS)

# --- programs of the lab: they run in guests, so they bring nothing but libc --------------------
$(B)/lab/%: tests/vm/workload/%.cc $(wildcard tests/vm/workload/*.h)
	$(call say,CXX,$<)
	@mkdir -p $(@D)
	$(Q)$(STEP) $(COMPILE) -std=c++20 -O2 $(WARN) $(STRICT) -static $< -o $@

# What a guest gets: our programs with the libraries they need, and the files we install. Of another architecture's, no Python:
# this machine's does not run there.
PAYLOAD_PROGRAMS = $(PROGRAMS) $(BENCHES) $(B)/lab/workload $(B)/lab/halt $(B)/lab/bury $(B)/lab/crowd $(B)/lab/hang $(B)/lab/mover
# Servers that others are, in the guest.
DOUBLES := $(wildcard tests/kube/*_double.py)
$(B)/payload/.made: $(PAYLOAD_PROGRAMS) $(DOUBLES) $(wildcard systemd/* play/* tests/vm/machine/payload.py \
    tests/vm/machine/python.py tools/elf_libraries.py)
	$(call say,PAYLOAD,$(@D))
	$(Q)rm -rf $(@D) && tests/vm/bundle $(@D) $(PAYLOAD_PROGRAMS)
	$(if $(CROSS),,$(Q)tests/vm/bundle-python $(@D) $(DOUBLES))
	$(Q)cp -r systemd play $(@D)/
	$(Q)touch $@

$(B)/tsan/payload/.made: $(B)/tsan/headroomd $(B)/headroomctl $(B)/headroom-commands $(B)/lab/workload $(wildcard systemd/*) tests/vm/threads/suppressions
	$(call say,PAYLOAD,$(@D))
	$(Q)rm -rf $(@D) && tests/vm/bundle $(@D) $(B)/tsan/headroomd $(B)/headroomctl $(B)/headroom-commands $(B)/lab/workload
	$(Q)cp -r systemd tests/vm/threads/suppressions $(@D)/
	$(Q)touch $@

# The BPF tests, for the kernels of the lab.
$(B)/test/payload/.made: $(B)/test/bpf tests/vm/machine/payload.py tools/elf_libraries.py
	$(call say,PAYLOAD,$(@D))
	$(Q)rm -rf $(@D) && tests/vm/bundle $(@D) $(B)/test/bpf
	$(Q)touch $@

.PHONY: deps check-deps test-deps
deps:
	$(Q)tools/install-deps $(if $(CROSS),--cross-$(ARCH))
test-deps:
	$(Q)tools/install-deps --test
check-deps:
	$(Q)tools/install-deps --check

# --- run, test, check -----------------------------------------------------------------------
.PHONY: run test vectors lab check bench install clean format
# Through a second make, so that what deps installed (pkg-config, bpftool) is seen.
KERNEL_OR_DEFAULT = $(or $(KERNEL),6.12)
progress = $(Q)MAKE='$(MAKE)' tools/build-with-progress
run: ## install what is missing, build, run the main job: here, or in the lab. KERNEL=6.1|6.12|newest ARCH=amd64|arm64
	$(Q)play/run --check
	$(Q)$(MAKE) --no-print-directory deps $(if $(CROSS),sysroot)
	$(progress) --then $$(play/run --seconds) all $$(play/run --targets)
	$(Q)play/run

# In the lab the main job needs no more than this.
PLAY_PROGRAMS = $(PROGRAMS) $(B)/lab/workload
$(B)/play/payload/.made: $(PLAY_PROGRAMS) $(wildcard systemd/* play/* tests/vm/machine/payload.py)
	$(call say,PAYLOAD,$(@D))
	$(Q)rm -rf $(@D) && tests/vm/bundle $(@D) $(PLAY_PROGRAMS)
	$(Q)cp -r systemd play $(@D)/
	$(Q)touch $@
# The lab's image is mostly waiting for the mirror: beside the compiler.
.PHONY: lab-image
lab-image:
	$(call say,IMAGE,$(KERNEL_OR_DEFAULT))
	$(Q)tests/vm/build-image $(KERNEL_OR_DEFAULT) >/dev/null

test: test-deps ## install what is missing, run the tests that every change must pass; of the lab's the main job's
	$(progress) --then 900 'run the tests' WERROR=1 lab-image $(B)/test/unit $(B)/test/vectors $(B)/test/bpf $(PROGRAMS) $(B)/payload/.made $(B)/test/payload/.made
	$(Q)tests/run --core

test-all: test-deps ## every test there is: packages, fuzzers, and the whole lab on each kernel, for more than an hour
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) test-programs $(PROGRAMS) $(B)/payload/.made $(B)/test/payload/.made $(B)/tsan/payload/.made \
	  $(B)/deb/payload/.made $(B)/dist/payload/.made
	$(Q)tests/run

.PHONY: test-all test-programs test-unit test-bpf test-build test-rules test-image test-page test-terminal test-kube test-vm dashboards
test-programs: $(B)/test/unit $(B)/test/bpf $(FUZZERS)
test-unit: $(B)/test/unit ## the unit tests alone
	$(Q)tests/run unit
test-bpf: $(B)/test/bpf ## the BPF tests alone, on this kernel
	$(Q)tests/run bpf
test-build: $(PROGRAMS) ## the build: the builder's flags, hardening, a missing compiler, a full disk
	$(Q)tests/run build
test-rules: ## Prometheus' own tools on the rules and dashboards
	$(Q)tests/run rules
test-image: $(PROGRAMS) ## the container image: its programs start in it, skopeo reads it
	$(Q)tests/run image
test-page: ## headroomd's page in a headless browser, over a recording
	$(Q)tests/run page
test-terminal: $(B)/headroomctl ## headroomctl top and watch in a real terminal, over a recording
	$(Q)tests/run terminal
test-kube: $(B)/headroom-kube ## headroom-kube against an API server that fails; kubectl and published schemas on the manifests
	$(Q)tests/run kube
test-vm: $(B)/payload/.made $(B)/test/payload/.made $(B)/tsan/payload/.made $(B)/deb/payload/.made $(B)/dist/payload/.made ## the VM tests alone; KERNEL=6.1|6.12|newest for one kernel
	$(Q)tests/run vm $(if $(KERNEL),--kernel $(KERNEL))

# Not a part of `make test`: the cluster takes half an hour of an otherwise quiet machine. KUBERNETES_BIN=DIR has a release's
# programs (1.27 or later), ETCD_BIN, CONTAINERD_BIN and RUNC_BIN what goes with them; without it Kubernetes 1.20 is built
# from Debian's source first, once, for ten minutes.
export KUBERNETES_BIN ETCD_BIN CONTAINERD_BIN RUNC_BIN
.PHONY: test-kubernetes test-kubernetes-api
test-kubernetes-api: $(B)/headroom-kube ## headroom-kube against a real API server and scheduler, here and without a kubelet, in minutes
	$(Q)python3 -B tests/kube/real_api.py $<
test-kubernetes: deps ## a cluster in a VM: a real kubelet and API server; KUBERNETES_BIN=DIR for another release than 1.20
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(PROGRAMS) $(IMAGE) $(B)/lab/workload
	$(Q)mkdir -p $(B)/bench $(B)/kubernetes
	$(Q)tests/vm/pack-kubernetes $(B)/kubernetes/payload $(IMAGE) $(PROGRAMS) $(B)/lab/workload > $(B)/kubernetes/kernel
	$(Q)tests/vm/run --folder tests/vm/kubernetes --kernel $$(cat $(B)/kubernetes/kernel) --payload $(B)/kubernetes/payload \
	    $(addprefix --filter ,$(FILTER))

test-threads: $(B)/tsan/payload/.made ## headroomd compiled with ThreadSanitizer, under load in the lab
	$(Q)tests/vm/run --kernel $(KERNEL_OR_DEFAULT) --payload $(B)/tsan/payload --filter test_threads

FUZZ_SECONDS ?= 600
.PHONY: fuzz fuzzers
fuzzers: $(FUZZERS)
fuzz: deps ## fuzz every parser for FUZZ_SECONDS (600) each; what is new stays in the corpus
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) fuzzers
	$(Q)tests/fuzz/run --seconds $(FUZZ_SECONDS) --keep $(FUZZERS)

vectors: deps $(if $(CROSS),sysroot) ## the kubelet's vectors alone; HEADROOM_VECTORS=DIR takes them from there; ARCH=arm64 under qemu-user
	$(progress) --then $(if $(CROSS),60,6) 'run the vectors' $(B)/test/vectors
	$(Q)$(if $(CROSS),$(EMULATE) $(B)/test/vectors --gtest_brief=1,tests/run vectors)

dashboards: ## check rules and dashboards, then a Prometheus with them; TARGET=HOST:PORT of a headroomd
	$(Q)dashboards/show $(if $(TARGET),--target $(TARGET))

lab: deps $(if $(CROSS),sysroot) ## a shell in a lab VM; KERNEL=6.1|6.12|newest ARCH=amd64|arm64
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(B)/payload/.made
	$(Q)tests/vm/shell --kernel $(or $(KERNEL),6.12) --payload $(B)/payload

check: check-deps ## formatting, layering, clang-tidy, shellcheck
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(BPF_SKEL) $(B)/page/page.inc
	$(Q)tools/check $(if $(TIDY),--tidy)

.PHONY: check-reproducible bench-build
check-reproducible: $(B)/headroomd ## build the daemon again, from clean in another folder: the bytes must be the same
	$(Q)tools/check-reproducible $(B)/headroomd
bench-build: deps ## seconds of CPU of each target from clean, and the dearest headers, into build/bench/build.json
	$(Q)bench/build --out $(B)/bench/build.json

.PHONY: print-cxxflags
print-cxxflags:
	@echo '$(filter-out -MMD -MP -g1 -ffile-prefix-map=%,$(ALL_CXXFLAGS))'

format: ## format every source file
	$(Q)git ls-files '*.cc' '*.h' '*.c' | xargs clang-format -i

BENCH_KERNELS = $(or $(KERNEL),6.12 newest)
# A bench on each of these kernels, also after one that missed its bound; then it fails.
on_kernels = missed=0; for kernel in $(2); do \
	  tests/vm/bench-$(1) --kernel $$kernel --payload $(B)/payload --out $(B)/bench/$(1)-$$kernel.json || missed=1; done; exit $$missed
ALL_BENCHES := sweep native daemon threshold turn waits scrape page evict release burst forecast peers swap cpus simulate
.PHONY: $(ALL_BENCHES:%=bench-%)
bench: ## every benchmark, also after one that missed its bound; results under build/bench/, tables in docs/benchmarks.md
	$(Q)mkdir -p $(B)/bench && : > $(B)/bench/failed && for bench in $(ALL_BENCHES:%=bench-%); do \
	  $(MAKE) --no-print-directory $$bench || echo $$bench >> $(B)/bench/failed; done
	$(Q)bench/table
	$(Q)if [ -s $(B)/bench/failed ]; then echo "failed or missed a bound:" $$(cat $(B)/bench/failed) >&2; exit 1; fi

bench-sweep: deps ## the sweep against a file reader, in the lab, up to 10,000 cgroups; KERNEL=… for one
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(B)/payload/.made
	$(Q)$(call on_kernels,sweep,$(BENCH_KERNELS))

bench-native: deps ## the sweep here, not emulated, if programs can be loaded; the machine must be quiet
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(B)/bench/sweep
	$(Q)mkdir -p $(B)/bench && $(B)/bench/sweep --cgroups 1000,3000 --rounds 100 --json $(B)/bench/native.json || echo "bench-native: not measured"

bench-daemon: deps ## CPU and memory of the daemon at 1,000 pods, in the lab
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(B)/payload/.made
	$(Q)tests/vm/bench-daemon --kernel $(or $(KERNEL),6.12) --payload $(B)/payload --out $(B)/bench/daemon.json

bench-threshold: deps ## CPU of the daemon just above its threshold for ten minutes, and while eleven pods fill the node slowly, in the lab
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(B)/payload/.made
	$(Q)tests/vm/bench-threshold --kernel $(or $(KERNEL),6.12) --payload $(B)/payload --out $(B)/bench/threshold.json

.PHONY: soak-cpus
soak-cpus: deps ## twenty pinned pods come and go for minutes, the daemon is killed, its file lost; KERNEL=… MINUTES=…
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(B)/payload/.made
	$(Q)tests/vm/soak-cpus --kernel $(or $(KERNEL),6.12) --minutes $(or $(MINUTES),5) --payload $(B)/payload --out $(B)/bench/soak-cpus-$(or $(KERNEL),6.12).json

.PHONY: soak-limits
soak-limits: deps ## memory limits of twenty pods raised and lowered a thousand times under load, in the lab; KERNEL=… LOWERINGS=…
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(B)/payload/.made
	$(Q)tests/vm/soak-limits --kernel $(KERNEL_OR_DEFAULT) --lowerings $(or $(LOWERINGS),1000) --payload $(B)/payload --out $(B)/bench/soak-limits-$(KERNEL_OR_DEFAULT).json

.PHONY: soak-reserves
soak-reserves: deps ## kube-reserved learned from a recording of 17 minutes, and enforced, in the lab; KERNEL=… MINUTES=…
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(B)/payload/.made
	$(Q)tests/vm/soak-reserves --kernel $(KERNEL_OR_DEFAULT) --minutes $(or $(MINUTES),17) --payload $(B)/payload --out $(B)/bench/soak-reserves-$(KERNEL_OR_DEFAULT).json

.PHONY: soak-identity
soak-identity: $(B)/test/unit ## kills and writes while cgroups and pids change under the same names, here; ROUNDS=… SEED=…
	$(Q)HEADROOM_SOAK_ROUNDS=$(or $(ROUNDS),10000) HEADROOM_SOAK_SEED=$(or $(SEED),1) \
	  $(B)/test/unit --gtest_brief=1 --gtest_filter='IdentitySoak.*'

.PHONY: chaos soak test-threads
CHAOS = tests/vm/chaos --kernel $(KERNEL_OR_DEFAULT) --minutes $(or $(MINUTES),60) $(if $(SEED),--seed $(SEED)) --payload $(B)/payload
chaos: deps ## random faults under load for an hour, in the lab; KERNEL=… MINUTES=…, and SEED=… of a run to repeat it
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(B)/payload/.made
	$(Q)$(CHAOS) --out $(B)/bench/chaos-$(KERNEL_OR_DEFAULT).json
soak: deps ## the same load without faults: nothing may leak; KERNEL=… MINUTES=… SEED=…
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(B)/payload/.made
	$(Q)$(CHAOS) --no-faults --out $(B)/bench/soak-$(KERNEL_OR_DEFAULT).json

bench-evict: deps ## fifty evictions under the fastest filler, and fifty beside moves, in the lab; KERNEL=… for one
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(B)/payload/.made
	$(Q)$(call on_kernels,evict,$(or $(KERNEL),6.1 6.12 newest))

bench-release: deps ## how soon 4 GiB of a victim without CPU time are back, in the lab; KERNEL=… for another
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(B)/payload/.made
	$(Q)tests/vm/bench-release --kernel $(or $(KERNEL),6.12) --payload $(B)/payload --out $(B)/bench/release.json

bench-burst: deps ## a latency-bound service at its CPU quota without cpuBurst and with it, and its neighbour, in the lab; KERNEL=… for one
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(B)/payload/.made
	$(Q)$(call on_kernels,burst,$(or $(KERNEL),6.1 6.12 newest))

bench-forecast: deps ## a guaranteed pod beside batch pods that a wrong forecast let in, in the lab; KERNEL=… for another
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(B)/payload/.made
	$(Q)tests/vm/bench-forecast --kernel $(or $(KERNEL),6.12) --payload $(B)/payload --out $(B)/bench/forecast.json

bench-peers: deps ## headroomd beside earlyoom, nohang, oomd and systemd-oomd, in the lab: the kill, the victim, the cost
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(B)/payload/.made
	$(Q)tests/vm/bench-peers --kernel $(or $(KERNEL),6.12) --payload $(B)/payload --out $(B)/bench/peers.json

bench-swap: deps ## the same on nodes with zram, zswap, fast and slow disk swap and none; for hours: MINUTES=… to begin no run after, PEERS=headroomd for it alone, RUNS=…, the others in the first BESIDE=… of them
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(B)/payload/.made
	$(Q)tests/vm/bench-swap --kernel $(KERNEL_OR_DEFAULT) --minutes $(or $(MINUTES),0) --runs $(or $(RUNS),0) $(if $(PEERS),--peers $(PEERS)) --beside $(or $(BESIDE),0) --payload $(B)/payload --out $(B)/bench/swap-$(KERNEL_OR_DEFAULT).json

bench-turn: deps ## instructions of one turn in user space, by callgrind, here
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(B)/bench/turn
	$(Q)bench/instructions --program $(B)/bench/turn --out $(B)/bench/turn.json

bench-waits: deps ## user-space time that the waits for CPUs by cause take at 1,000 pods, in the lab
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(B)/payload/.made
	$(Q)tests/vm/bench-waits --kernel $(or $(KERNEL),6.12) --payload $(B)/payload --out $(B)/bench/waits.json

bench-cpus: deps ## a cache-sensitive load among noise, and with a CPU of its own, here; the machine must be quiet
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(B)/bench/pinning
	$(Q)mkdir -p $(B)/bench && $(B)/bench/pinning --out $(B)/bench/cpus.json

bench-simulate: deps ## time and memory of a simulated day of 100, 1,000 and 10,000 nodes, here; NODES="…" for others
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(B)/headroomctl
	$(Q)bench/simulate $(if $(NODES),--nodes $(NODES)) --program $(B)/headroomctl --out $(B)/bench/simulate.json

bench-page: ## what the page takes of a browser's machine at 1,000 pods, here
	$(Q)bench/page

bench-scrape: deps ## a scrape of thousands of cgroups, and the same through prometheus-cpp, here
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(B)/bench/scrape
	$(Q)$(B)/bench/scrape

# --- Debian packages ------------------------------------------------------------------------
.PHONY: deb
HERE = $(shell . /etc/os-release && echo $$VERSION_CODENAME)
deb: ## Debian packages, checked by lintian, in build/deb; SUITE=trixie for another release (needs root), ARCH=arm64
ifneq ($(SUITE)$(CROSS),)
	$(Q)tools/install-deps --root
	$(Q)tools/make-deb-in $(or $(SUITE),$(HERE)) $(ARCH)
else
	$(Q)tools/install-deps --deb
	$(Q)tools/make-deb
endif
# For the lab: with the packages they depend on, fetched once.
$(B)/deb/payload/.made: $(B)/lab/workload $(PROGRAMS) \
    $(wildcard debian/* systemd/* docs/*.[1-8] tools/make-deb* tests/vm/pack-debs tests/vm/machine/debs.py)
	$(call say,DEB,$(B)/deb)
	$(Q)for suite in bookworm trixie; do \
	  if [[ $$suite == $(HERE) ]]; then suite=; fi; $(MAKE) --no-print-directory deb SUITE=$$suite >/dev/null || exit; done
	$(Q)tests/vm/pack-debs $(B)/deb $(B)/lab/workload
	$(Q)touch $@

# --- container image ------------------------------------------------------------------------
# The time of every file in it: the commit's.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
IMAGE := $(B)/image/headroom.tar
# Of no use without systemd's socket.
IMAGE_PROGRAMS := $(filter-out %/headroom-commands,$(PROGRAMS))
# Named together with all, it comes second: two makes would write the same programs.
.PHONY: image
image: deps $(if $(CROSS),sysroot) $(filter all,$(MAKECMDGOALS)) ## the container image with an SPDX list of its packages, as an OCI archive in build/image
	$(Q)$(MAKE) --no-print-directory -j$(shell nproc) $(IMAGE)
$(IMAGE): $(IMAGE_PROGRAMS) tools/oci-image tools/debian_packages.py tools/elf_libraries.py
	$(Q)tools/oci-image --tag headroom:$(VERSION) --version $(VERSION) --out $@ $(IMAGE_PROGRAMS)

include mk/dist.mk

# --- install --------------------------------------------------------------------------------
# Into a folder first: either all of it is installed, or nothing.
STAGE := $(B)/stage
# The programs that are installed.
STAGED := $(B)
# systemd's folder for units: what systemd.pc says for /usr, which is also where it looks; else the one below PREFIX.
UNITDIR ?= $(if $(filter /usr,$(PREFIX)),$(or $(shell pkg-config --variable=systemdsystemunitdir systemd 2>/dev/null),\
  /usr/lib/systemd/system),$(PREFIX)/lib/systemd/system)
.PHONY: stage
install: stage ## install under DESTDIR and PREFIX (default /usr)
	$(Q)tools/install-tree $(STAGE) '$(DESTDIR)'
stage: $(PROGRAMS:$(B)/%=$(STAGED)/%)
	$(Q)rm -rf $(STAGE)
	$(Q)install -D -m 755 $(STAGED)/headroomd $(STAGE)$(PREFIX)/sbin/headroomd
	$(Q)install -D -m 755 $(STAGED)/headroom-kube $(STAGE)$(PREFIX)/sbin/headroom-kube
	$(Q)install -D -m 755 $(STAGED)/headroomctl $(STAGE)$(PREFIX)/bin/headroomctl
	$(Q)install -D -m 755 $(STAGED)/headroom-commands $(STAGE)$(PREFIX)/libexec/headroom-commands
	$(Q)install -d $(STAGE)$(PREFIX)/share/bash-completion/completions $(STAGE)$(PREFIX)/share/zsh/vendor-completions \
	  $(STAGE)$(PREFIX)/share/fish/vendor_completions.d
	$(Q)$(EMULATE) $(STAGED)/headroomctl completion bash > $(STAGE)$(PREFIX)/share/bash-completion/completions/headroomctl
	$(Q)$(EMULATE) $(STAGED)/headroomctl completion zsh > $(STAGE)$(PREFIX)/share/zsh/vendor-completions/_headroomctl
	$(Q)$(EMULATE) $(STAGED)/headroomctl completion fish > $(STAGE)$(PREFIX)/share/fish/vendor_completions.d/headroomctl.fish
	$(Q)install -D -m 644 -t $(STAGE)$(UNITDIR) systemd/headroomd.service systemd/headroom-kube.service systemd/headroom-events.service \
	  systemd/headroom-commands@.service systemd/headroom-commands.socket systemd/headroom.slice
	$(if $(filter /usr,$(PREFIX)),,$(Q)sed -i -E 's,/usr/(s?bin|libexec)/,$(PREFIX)/\1/,' $(STAGE)$(UNITDIR)/*.service)
	$(Q)install -D -m 644 systemd/io.headroom.Headroom1.conf $(STAGE)$(PREFIX)/share/dbus-1/system.d/io.headroom.Headroom1.conf
	$(Q)install -D -m 644 systemd/io.headroom.Headroom1.policy \
	  $(STAGE)$(PREFIX)/share/polkit-1/actions/io.headroom.Headroom1.policy
	$(Q)install -D -m 644 docs/headroomd.8 $(STAGE)$(PREFIX)/share/man/man8/headroomd.8
	$(Q)install -D -m 644 docs/headroom-kube.8 $(STAGE)$(PREFIX)/share/man/man8/headroom-kube.8
	$(Q)install -D -m 644 docs/headroomctl.1 $(STAGE)$(PREFIX)/share/man/man1/headroomctl.1
	$(Q)install -D -m 644 docs/headroom.yaml.5 $(STAGE)$(PREFIX)/share/man/man5/headroom.yaml.5
	$(Q)install -D -m 644 docs/io.headroom.Headroom1.5 $(STAGE)$(PREFIX)/share/man/man5/io.headroom.Headroom1.5
	$(Q)install -D -m 644 docs/headroom-metrics.7 $(STAGE)$(PREFIX)/share/man/man7/headroom-metrics.7
	$(Q)install -D -m 644 docs/headroom.schema.json $(STAGE)$(PREFIX)/share/headroom/headroom.schema.json
	$(Q)install -D -m 644 -t $(STAGE)$(PREFIX)/share/headroom/prometheus dashboards/prometheus/*.yaml docs/runbooks.md
	$(Q)install -D -m 644 -t $(STAGE)$(PREFIX)/share/headroom/grafana dashboards/grafana/*.json
	$(Q)install -d $(STAGE)/etc/headroom/headroom.yaml.d $(STAGE)/etc/headroom/manifests
	$(Q)install -D -m 644 systemd/headroom.yaml $(STAGE)/etc/headroom/headroom.yaml

clean: ## remove build/
	rm -rf $(B)

# Not those of the tree a package was built in, nor a directory of that name.
-include $(shell find $(B) -path $(B)/deb -prune -o -type f -name '*.d' -print 2>/dev/null)
