# SPDX-License-Identifier: Apache-2.0
# The portable archive: programs with the libraries they need, units, manual pages, install.sh. And the source archive.
MACHINE := $(firstword $(subst -, ,$(CROSS_$(ARCH))))
DIST := headroom-$(VERSION)-linux-$(MACHINE)
DIST_DIR := $(B)/dist/$(DIST)
DIST_PROGRAMS := $(PROGRAMS:$(B)/%=$(B)/dist/programs/%)
# Of an archive that must not depend on the umask, nor on the hour.
TAR = tar --sort=name --mtime=@$(SOURCE_DATE_EPOCH) --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw

# The same objects, linked for any host: C++'s own libraries in the program, the others in usr/lib/headroom. An RPATH and not a
# RUNPATH, because a library's own libraries are there too.
$(B)/dist/programs/headroomd: $(B)/obj/userspace/daemon/main.o $(B)/libheadroom.a
$(B)/dist/programs/headroomctl: $(B)/obj/userspace/ctl/main.o $(B)/libheadroom.a
$(B)/dist/programs/headroom-kube: $(B)/obj/userspace/kube/main.o $(B)/libheadroom.a
$(B)/dist/programs/headroom-commands: $(call obj,$(COMMANDS_SRC))
$(B)/dist/programs/headroom-commands: LDLIBS := -pthread
$(B)/dist/programs/headroom-kube: LDLIBS += -lcurl -lgnutls
$(B)/dist/programs/headroomctl: LDLIBS += $(CURSES_LIBS)
$(DIST_PROGRAMS):
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(STEP) $(CXX) $(SYSROOT_FLAG) $(HARDEN_LD) $(CXXFLAGS) $(LDFLAGS) -static-libstdc++ -static-libgcc -Wl,--disable-new-dtags \
	  -Wl,-rpath,'$$ORIGIN/../lib/headroom' $^ -o $@ $(LDLIBS)

.PHONY: dist dist-source test-packaging test-dist
dist: $(B)/dist/$(DIST).tar.gz dist-source ## the portable archive with install.sh, its SPDX list, and the source archive, in build/dist
$(B)/dist/$(DIST).tar.gz: $(DIST_PROGRAMS) tools/install.sh tools/install-tree tools/portable-files tools/debian_packages.py tools/elf_libraries.py \
    $(wildcard systemd/* docs/*.[1-8] docs/*.json dashboards/*/*) LICENSE README.md CHANGELOG.md
	$(Q)rm -rf $(DIST_DIR)
	$(Q)$(MAKE) --no-print-directory stage STAGE=$(DIST_DIR)/files STAGED=$(B)/dist/programs PREFIX=/usr UNITDIR=/usr/lib/systemd/system
	$(Q)tools/portable-files --version $(VERSION) --spdx $(B)/dist/$(DIST).spdx.json --files $(DIST_DIR)/files
	$(Q)sed 's/@MACHINE@/$(MACHINE)/' tools/install.sh > $(DIST_DIR)/install.sh && chmod 755 $(DIST_DIR)/install.sh
	$(Q)install -m 755 tools/install-tree $(DIST_DIR)/
	$(Q)install -m 644 LICENSE README.md CHANGELOG.md $(DIST_DIR)/
	$(Q)$(STEP) bash -o pipefail -c "$(TAR) -C $(B)/dist -c $(DIST) | gzip -9n > $@"
	$(call say,DIST,$@)

# For the lab: the archive, unpacked, and a pod's program.
$(B)/dist/payload/.made: $(B)/dist/$(DIST).tar.gz $(B)/lab/workload
	$(Q)rm -rf $(@D) && tests/vm/bundle $(@D) $(B)/lab/workload
	$(Q)mkdir $(@D)/archive && tar xf $< -C $(@D)/archive --strip-components=1
	$(Q)touch $@

# What git tracks, as it is in the working tree.
SOURCE_DIST := headroom-$(VERSION)
dist-source: ## the source archive, in build/dist
	@mkdir -p $(B)/dist
	$(Q)git ls-files -z | $(TAR) --null --no-recursion -T - --transform 's,^,$(SOURCE_DIST)/,' -c | gzip -9n > $(B)/dist/$(SOURCE_DIST).tar.gz
	$(call say,DIST,$(B)/dist/$(SOURCE_DIST).tar.gz)

test-packaging: $(PROGRAMS) ## the portable archive and the kustomize components
	$(Q)tests/run packaging
# Not a part of `make test`: it fetches four small root directories of Debian, once.
test-dist: $(B)/dist/$(DIST).tar.gz ## the portable archive in Debian 12, 13 and sid; Debian 11 must be refused
	$(Q)tests/packaging/in-distributions $<

.PHONY: rpm test-rpm
rpm: dist-source ## RPM packages for Fedora and EL 10, checked by rpmlint, in build/rpm
	$(Q)tools/install-deps --rpm
	$(Q)tools/make-rpm $(VERSION) $(B)/dist/$(SOURCE_DIST).tar.gz
test-rpm: ## the RPM packages of `make rpm`: contents, scripts, dependencies
	$(Q)tests/run rpm
