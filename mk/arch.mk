# SPDX-License-Identifier: Apache-2.0
# The architecture that is built for, by Debian's name: ARCH=arm64 on amd64 builds below build/arm64 with Debian's cross compiler.
# The libraries are those that `make sysroot ARCH=arm64` unpacked; with SYSROOT= those of multi-arch packages (dpkg
# --add-architecture arm64), which are below /.
debian_arch = $(patsubst x86_64,amd64,$(patsubst aarch64,arm64,$(1)))
BUILD_ARCH := $(call debian_arch,$(shell uname -m))
ARCH ?= $(BUILD_ARCH)
# Empty, or what the names of the tools begin with.
CROSS_amd64 := x86_64-linux-gnu-
CROSS_arm64 := aarch64-linux-gnu-
CROSS := $(if $(filter $(ARCH),$(BUILD_ARCH)),,$(CROSS_$(ARCH)))
BPF_ARCH := $(patsubst amd64,x86,$(ARCH))
PKG_CONFIG ?= pkg-config

ifneq ($(CROSS),)
MULTIARCH := $(CROSS:%-=%)
SYSROOT_OWN := $(or $(HEADROOM_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/headroom)/sysroot-$(ARCH)
SYSROOT ?= $(SYSROOT_OWN)
SYSROOT_FLAG := $(if $(SYSROOT),--sysroot=$(SYSROOT) -ffile-prefix-map=$(SYSROOT)/=/)
# What the image and the archives are made of is found there as well.
export ARCH SYSROOT
CLANG_TARGET := --target=$(MULTIARCH) $(SYSROOT_FLAG)
# What clang calls for 128-bit numbers, which libgcc does not have.
CLANG_BUILTINS = $(wildcard $(SYSROOT)/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.builtins-$(firstword $(subst -, ,$(MULTIARCH))).a)
EMULATE := qemu-$(firstword $(subst -, ,$(MULTIARCH))) -L $(or $(SYSROOT),/)
ifeq ($(origin PKG_CONFIG),file)
PKG_CONFIG := PKG_CONFIG_SYSROOT_DIR=$(SYSROOT) PKG_CONFIG_LIBDIR=$(SYSROOT)/usr/lib/$(MULTIARCH)/pkgconfig:$(SYSROOT)/usr/share/pkgconfig pkg-config
endif
endif

# The records that the BPF programs and the daemon share are little-endian.
supported = $(if $(shell $(firstword $(filter-out %ccache,$(CXX))) -dM -E -x c++ /dev/null 2>/dev/null | \
  grep '__BYTE_ORDER__ __ORDER_BIG_ENDIAN__'),$(error headroom: big-endian machines are not supported: the build is for amd64 or arm64)) \
  $(if $(filter amd64 arm64,$(ARCH)),,$(error headroom: ARCH=$(ARCH) is not supported: it is amd64 or arm64))

.PHONY: sysroot
sysroot: ## with ARCH=arm64: fetch the libraries to build for it, into the cache
	$(Q)$(if $(and $(CROSS),$(SYSROOT)),tools/make-sysroot $(ARCH) $(SYSROOT),:)
