// SPDX-License-Identifier: Apache-2.0
// The D-Bus service on a bus of the test's own.
#include "ctl/common/dbus_client.h"
#include "ctl/common/status_document.h"
#include "report/dbus/dbus_service.h"
#include "report/dbus/dbus_thread.h"
#include "report/sample.h"
#include "report/view/cpus_view.h"
#include "support/eventually.h"
#include "support/private_bus.h"

#include <systemd/sd-bus.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

using namespace std::chrono_literals;
using namespace headroom::test;

class Dbus : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!bus.runs()) GTEST_SKIP() << "no dbus-daemon on this machine";
    views->node.publish([](NodeView& next, const NodeView*) { next = sample_node(); });
    views->cgroups.publish([](CgroupTable& next, const CgroupTable*) { next = sample_cgroups(); });
  }
  PrivateBus bus;
  std::shared_ptr<PublishedViews> views = std::make_shared<PublishedViews>();
};

TEST_F(Dbus, StatusIsReadByHeadroomctl) {
  const auto thread = DbusThread::start({.views = views});
  ASSERT_TRUE(thread);
  ASSERT_TRUE(test::eventually([&] { return (*thread)->connected(); }));
  const auto document = ctl::fetch_status();
  ASSERT_TRUE(document) << document.error().what;
  const auto status = ctl::parse_status(*document);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->mode, "enforce");
  EXPECT_EQ(status->pods.size(), 3u);
}

TEST_F(Dbus, VersionAndModeAreProperties) {
  const auto thread = DbusThread::start({.views = views});
  ASSERT_TRUE(test::eventually([&] { return (*thread)->connected(); }));
  sd_bus* client = nullptr;
  ASSERT_GE(sd_bus_open_system(&client), 0);
  for (const auto& [property, value] :
       {std::pair{"Version", HEADROOM_VERSION}, {"Mode", "enforce"}}) {
    char* text = nullptr;
    ASSERT_GE(sd_bus_get_property_string(client, kBusName, kBusPath, kBusInterface, property,
                                         nullptr, &text),
              0);
    EXPECT_STREQ(text, value);
    std::free(text);
  }
  sd_bus_flush_close_unref(client);
}

int on_changed(sd_bus_message* message, void* user, sd_bus_error*) {
  const char* interface = nullptr;
  if (sd_bus_message_read(message, "s", &interface) < 0) return 0;
  auto& names = *static_cast<std::vector<std::string>*>(user);
  sd_bus_message_enter_container(message, 'a', "{sv}");
  while (sd_bus_message_enter_container(message, 'e', "sv") > 0) {
    const char* name = nullptr;
    sd_bus_message_read(message, "s", &name);
    names.emplace_back(name);
    sd_bus_message_skip(message, "v");
    sd_bus_message_exit_container(message);
  }
  return 0;
}

TEST_F(Dbus, ChangedPropertiesAreSignalled) {
  const auto thread = DbusThread::start({.views = views});
  ASSERT_TRUE(test::eventually([&] { return (*thread)->connected(); }));
  sd_bus* client = nullptr;
  ASSERT_GE(sd_bus_open_system(&client), 0);
  std::vector<std::string> names;
  ASSERT_GE(
      sd_bus_match_signal(client, nullptr, kBusName, kBusPath, "org.freedesktop.DBus.Properties",
                          "PropertiesChanged", on_changed, &names),
      0);
  const auto on_signal = [&] {
    while (sd_bus_process(client, nullptr) > 0) {
    }
  };
  // Its first state is announced as well; then only what changes.
  std::this_thread::sleep_for(1500ms);
  on_signal();
  names.clear();
  views->node.publish([](NodeView& next, const NodeView*) {
    next = sample_node();
    next.conditions[1] = !next.conditions[1];
  });
  (*thread)->properties_changed();
  EXPECT_TRUE(test::eventually([&] {
    on_signal();
    return !names.empty();
  }));
  EXPECT_EQ(names, (std::vector<std::string>{"DiskPressure"}));
  sd_bus_flush_close_unref(client);
}

TEST(BusProperties, NameTheSource) {
  NodeView node;
  EXPECT_EQ(properties_of(node).source, "");
  node.sources.fill("bpf");
  EXPECT_EQ(properties_of(node).source, "bpf");
  node.sources[3] = "files";
  EXPECT_EQ(properties_of(node).source, "hybrid");
  node.sources.fill("files");
  EXPECT_EQ(properties_of(node).source, "files");
}

TEST(BusProperties, NameTheChangedProperties) {
  const BusProperties before{"observe", {false, false, false, false}, "bpf"};
  EXPECT_TRUE(changed_properties(before, before).empty());
  const auto names = changed_properties(before, {"enforce", {true, false, true, true}, "files"});
  ASSERT_EQ(names.size(), 5u);
  EXPECT_STREQ(names[0], "Mode");
  EXPECT_STREQ(names[1], "MemoryPressure");
  EXPECT_STREQ(names[2], "PIDPressure");
  EXPECT_STREQ(names[3], "CPUPressure");
  EXPECT_STREQ(names[4], "Source");
}

// What polkit would say of every caller, and what it was asked.
class FakePolkit {
 public:
  explicit FakePolkit(bool yes) : yes_(yes) {
    EXPECT_GE(sd_bus_open_system(&bus_), 0);
    EXPECT_GE(sd_bus_add_object_vtable(bus_, nullptr, "/org/freedesktop/PolicyKit1/Authority",
                                       "org.freedesktop.PolicyKit1.Authority", kVtable, this),
              0);
    EXPECT_GE(sd_bus_request_name(bus_, "org.freedesktop.PolicyKit1", 0), 0);
    thread_ = std::thread([this] {
      while (!stop_) {
        while (sd_bus_process(bus_, nullptr) > 0) {
        }
        sd_bus_wait(bus_, 10'000);
      }
    });
  }
  ~FakePolkit() {
    stop_ = true;
    thread_.join();
    sd_bus_flush_close_unref(bus_);
  }
  std::vector<std::string> asked;  // the actions

 private:
  static int check(sd_bus_message* call, void* user, sd_bus_error*) {
    auto& polkit = *static_cast<FakePolkit*>(user);
    const char* action = nullptr;
    sd_bus_message_skip(call, "(sa{sv})");
    sd_bus_message_read(call, "s", &action);
    polkit.asked.emplace_back(action);
    return sd_bus_reply_method_return(call, "(bba{ss})", polkit.yes_ ? 1 : 0, 0, 0);
  }
  static constexpr sd_bus_vtable kVtable[] = {
      SD_BUS_VTABLE_START(0),
      SD_BUS_METHOD("CheckAuthorization", "(sa{sv})sa{ss}us", "(bba{ss})", check,
                    SD_BUS_VTABLE_UNPRIVILEGED),
      SD_BUS_VTABLE_END};
  bool yes_;
  std::atomic<bool> stop_ = false;
  sd_bus* bus_ = nullptr;
  std::thread thread_;
};

struct TaintCall {
  explicit TaintCall(uid_t allowed_uid) {
    auto started =
        DbusThread::start({.views = std::make_shared<PublishedViews>(),
                           .taint = [this](const auto& edits, bool) -> Result<std::string> {
                             received = edits;
                             return "[]";
                           },
                           .allowed_uid = allowed_uid});
    thread = std::move(*started);
    EXPECT_TRUE(test::eventually([&] { return thread->connected(); }));
  }
  std::vector<std::string> received;
  std::unique_ptr<DbusThread> thread;
};

TEST_F(Dbus, TheAllowedUidNeedsNoPolkit) {
  FakePolkit polkit(false);
  TaintCall editing(::getuid());
  EXPECT_TRUE(ctl::edit_taints({"a=b:NoSchedule"}, false));
  EXPECT_TRUE(polkit.asked.empty());
}

TEST_F(Dbus, AnotherUserIsAllowedIfPolkitAuthorizes) {
  FakePolkit polkit(true);
  TaintCall editing(::getuid() + 1);
  const auto answer = ctl::edit_taints({"a=b:NoSchedule", "c-"}, false);
  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_EQ(editing.received, (std::vector<std::string>{"a=b:NoSchedule", "c-"}));
  EXPECT_EQ(polkit.asked, (std::vector<std::string>{"io.headroom.Headroom1.taint"}));
}

TEST_F(Dbus, AnotherUserIsDeniedIfPolkitDeniesOrIsMissing) {
  TaintCall editing(::getuid() + 1);
  for (const bool there : {true, false}) {
    const auto polkit = there ? std::make_unique<FakePolkit>(false) : nullptr;
    const auto answer = ctl::edit_taints({"a=b:NoSchedule"}, false);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().kind, ctl::CallError::Kind::kForbidden) << answer.error().what;
    EXPECT_TRUE(editing.received.empty());
  }
}

TEST_F(Dbus, AnAsyncReplyBlocksNoOtherCall) {
  std::promise<Result<std::string>> moved, refused, abandoned;
  std::vector<std::promise<Result<std::string>>*> next{&abandoned, &refused, &moved};
  auto thread = DbusThread::start({.views = views,
                                   .admit = [](const std::string&) { return "yes"; },
                                   .repack =
                                       [&](bool dry_run) {
                                         EXPECT_TRUE(dry_run);
                                         auto* const promise = next.back();
                                         next.pop_back();
                                         return promise->get_future();
                                       }});
  ASSERT_TRUE(test::eventually([&] { return (*thread)->connected(); }));
  auto asked = std::async(std::launch::async, [] { return ctl::repack_cpus(true); });
  EXPECT_TRUE(test::eventually([&] { return next.size() == 2; }));
  EXPECT_EQ(ctl::check_admission("meanwhile").value(), "yes");
  moved.set_value("done");
  EXPECT_EQ(asked.get().value(), "done");
  refused.set_value(failure("there is none"));
  const auto no = ctl::repack_cpus(true);
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().kind, ctl::CallError::Kind::kRefused);
  EXPECT_EQ(no.error().what, "there is none");
  // A caller that still waits when the service ends gets no answer, and no other harm.
  auto last = std::async(std::launch::async, [] { return ctl::repack_cpus(true); });
  EXPECT_TRUE(test::eventually([&] { return next.empty(); }));
  thread->reset();
  EXPECT_FALSE(last.get());
}

TEST_F(Dbus, RepackNeedsRootOrPolkitAuthorization) {
  FakePolkit polkit(false);
  const auto thread = DbusThread::start({.views = views,
                                         .repack = [](bool) { return FutureReply(); },
                                         .allowed_uid = ::getuid() + 1});
  ASSERT_TRUE(test::eventually([&] { return (*thread)->connected(); }));
  const auto answer = ctl::repack_cpus(false);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ctl::CallError::Kind::kForbidden);
  EXPECT_EQ(polkit.asked, (std::vector<std::string>{"io.headroom.Headroom1.repack"}));
}

TEST_F(Dbus, AnyUserMayCallCpus) {
  CpusView view;
  view.policy = "static";
  view.pool = SharedPool{{3000}, {2500}};
  view.containers.push_back(
      {.pod_namespace = "default", .pod = "web", .uid = "u", .container = "c"});
  view.containers.back().cpus = CpuSet::parse("2-3").value();
  const auto thread =
      DbusThread::start({.views = views,
                         .cpus = [&] { return Result<std::string>(cpus_json(view)); },
                         .allowed_uid = ::getuid() + 1});
  ASSERT_TRUE(test::eventually([&] { return (*thread)->connected(); }));
  const auto answer = ctl::fetch_cpus();
  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_EQ(*answer, cpus_json(view));
  EXPECT_NE(answer->find(R"("cpus":"2-3")"), std::string::npos) << *answer;
}

TEST_F(Dbus, EventsAreReadByTheirNumber) {
  views->events.add("drift", {}, {{"slice", "/a"}});
  views->events.add("drift", {}, {{"slice", "/b"}});
  const auto thread = DbusThread::start({.views = views, .allowed_uid = ::getuid() + 1});
  ASSERT_TRUE(test::eventually([&] { return (*thread)->connected(); }));
  const auto events = ctl::fetch_events(1);
  ASSERT_TRUE(events) << events.error().what;
  EXPECT_EQ(events->find("/a"), std::string::npos) << *events;
  EXPECT_NE(events->find("/b"), std::string::npos) << *events;
}

TEST_F(Dbus, AnyUserMayCallMemory) {
  MemoryView view;
  view.policy = "Static";
  view.nodes[0].group = NodeSet::of(0);
  const auto thread =
      DbusThread::start({.views = views,
                         .memory = [&] { return Result<std::string>(memory_json(view)); },
                         .allowed_uid = ::getuid() + 1});
  ASSERT_TRUE(test::eventually([&] { return (*thread)->connected(); }));
  const auto answer = ctl::fetch_memory();
  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_EQ(*answer, memory_json(view));
}

TEST_F(Dbus, CallsReachTheDaemonAndRefusalsAreErrors) {
  std::vector<std::string> received;
  const auto thread = DbusThread::start(
      {.views = views,
       .admit = [](const std::string& manifest) { return Result<std::string>("to " + manifest); },
       .admit_to_start =
           [](const std::string& manifest) { return Result<std::string>("start " + manifest); },
       .taint = [&](const std::vector<std::string>& edits, bool overwrite) -> Result<std::string> {
         received = edits;
         received.emplace_back(overwrite ? "overwrite" : "keep");
         if (edits.size() == 1) return failure("taint \"a\" not found");
         return "done";
       }});
  ASSERT_TRUE(thread);
  ASSERT_TRUE(test::eventually([&] { return (*thread)->connected(); }));
  EXPECT_EQ(ctl::check_admission("a pod").value(), "to a pod");
  EXPECT_EQ(ctl::request_admission("a pod").value(), "start a pod");
  EXPECT_EQ(ctl::edit_taints({"a:NoExecute", "b-"}, true).value(), "done");
  EXPECT_EQ(received, (std::vector<std::string>{"a:NoExecute", "b-", "overwrite"}));
  const auto refused = ctl::edit_taints({"a-"}, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ctl::CallError::Kind::kRefused);
  EXPECT_EQ(refused.error().what, "taint \"a\" not found");
}

TEST_F(Dbus, RefusesARequestAboveOneMebibyteBeforeItIsRead) {
  std::size_t answered = 0;
  const auto thread = DbusThread::start(
      {.views = views,
       .admit = [&](const std::string& manifest) -> Result<std::string> {
         answered = manifest.size();
         return "yes";
       },
       .taint = [&](const std::vector<std::string>&, bool) -> Result<std::string> {
         answered = 1;
         return "done";
       }});
  ASSERT_TRUE(thread);
  ASSERT_TRUE(test::eventually([&] { return (*thread)->connected(); }));
  EXPECT_TRUE(ctl::check_admission(std::string(kMaxRequestBytes, 'a')));
  EXPECT_EQ(answered, kMaxRequestBytes);
  answered = 0;
  const auto admission = ctl::check_admission(std::string(kMaxRequestBytes + 1, 'a'));
  ASSERT_FALSE(admission);
  EXPECT_EQ(admission.error().kind, ctl::CallError::Kind::kRefused);
  EXPECT_EQ(admission.error().what,
            "the manifest is too large: at most 1048576 bytes are accepted");
  for (const auto& edits : {std::vector<std::string>{std::string(kMaxRequestBytes, 'a')},
                            std::vector<std::string>(kMaxRequestBytes / 8)}) {
    const auto edited = ctl::edit_taints(edits, false);
    ASSERT_FALSE(edited);
    EXPECT_EQ(edited.error().what,
              "the list of edits is too large: at most 1048576 bytes are accepted");
  }
  EXPECT_EQ(answered, 0u);
}

TEST_F(Dbus, AnUnsupportedMethodIsAnError) {
  const auto thread = DbusThread::start({.views = views});
  ASSERT_TRUE(test::eventually([&] { return (*thread)->connected(); }));
  const auto none = ctl::check_admission("a pod");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ctl::CallError::Kind::kUnreachable);
}

int on_evicted(sd_bus_message* message, void* user, sd_bus_error*) {
  const char *pod = nullptr, *uid = nullptr, *reason = nullptr, *text = nullptr;
  std::uint64_t at = 0;
  if (sd_bus_message_read(message, "sssst", &pod, &uid, &reason, &text, &at) < 0) return 0;
  *static_cast<std::string*>(user) = std::string(pod) + " " + uid + " " + reason;
  return 0;
}

TEST_F(Dbus, AnEvictionIsASignal) {
  const auto thread = DbusThread::start({.views = views});
  ASSERT_TRUE(test::eventually([&] { return (*thread)->connected(); }));
  sd_bus* client = nullptr;
  ASSERT_GE(sd_bus_open_system(&client), 0);
  std::string received;
  ASSERT_GE(sd_bus_match_signal(client, nullptr, nullptr, kBusPath, kBusInterface, "Evicted",
                                on_evicted, &received),
            0);
  (*thread)->evicted(sample_eviction());
  EXPECT_TRUE(test::eventually([&] {
    while (sd_bus_process(client, nullptr) > 0) {
    }
    return !received.empty();
  }));
  EXPECT_EQ(received, "default/hog uid-hog memory.available");
  sd_bus_flush_close_unref(client);
}

TEST_F(Dbus, ALostBusIsDetectedAndTheDaemonContinues) {
  const auto thread = DbusThread::start({.views = views}, 20ms);
  ASSERT_TRUE(test::eventually([&] { return (*thread)->connected(); }));
  bus.stop();
  EXPECT_TRUE(test::eventually([&] { return !(*thread)->connected(); }));
  (*thread)->evicted(sample_eviction());
  EXPECT_EQ((*thread)->lost(), 1u);
}

TEST_F(Dbus, WithoutADaemonTheClientFails) {
  ::setenv("HEADROOM_HTTP", "", 1);
  const auto document = ctl::fetch_status();
  ::unsetenv("HEADROOM_HTTP");
  ASSERT_FALSE(document);
  EXPECT_EQ(document.error().what,
            "headroomd is not running (io.headroom.Headroom1 has no owner on the system bus); see "
            "systemctl status headroomd");
}

TEST(DbusWithoutABus, IsOneClearLine) {
  ::setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1);
  ::setenv("HEADROOM_HTTP", "", 1);
  const auto document = ctl::fetch_status();
  ::unsetenv("HEADROOM_HTTP");
  ::unsetenv("DBUS_SYSTEM_BUS_ADDRESS");
  ASSERT_FALSE(document);
  EXPECT_EQ(document.error().what, "cannot reach the system bus: No such file or directory");
}

}  // namespace
}  // namespace headroom::report
