# SPDX-License-Identifier: Apache-2.0
# The portable archive: programs, units, manual pages, install.sh.
DIST := headroom-$(VERSION)-linux-$(shell uname -m)
.PHONY: dist test-packaging
dist: $(PROGRAMS) ## the portable archive with install.sh, in build/dist
	$(Q)rm -rf $(B)/dist/$(DIST) && mkdir -p $(B)/dist
	$(Q)$(MAKE) --no-print-directory install DESTDIR=$(CURDIR)/$(B)/dist/$(DIST)/files PREFIX=/usr >/dev/null
	$(Q)strip --strip-unneeded $(B)/dist/$(DIST)/files/usr/sbin/headroomd $(B)/dist/$(DIST)/files/usr/sbin/headroom-kube \
	  $(B)/dist/$(DIST)/files/usr/bin/headroomctl
	$(Q)install -m 755 tools/install.sh $(B)/dist/$(DIST)/install.sh
	$(Q)install -m 644 LICENSE README.md $(B)/dist/$(DIST)/
	$(Q)tar -C $(B)/dist --sort=name --mtime=@$(SOURCE_DATE_EPOCH) --owner=0 --group=0 --numeric-owner -c $(DIST) | \
	  gzip -9n > $(B)/dist/$(DIST).tar.gz
	$(call say,DIST,$(B)/dist/$(DIST).tar.gz)

test-packaging: $(PROGRAMS) ## the portable archive and the kustomize components
	$(Q)tests/run packaging
