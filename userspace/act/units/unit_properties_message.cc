// SPDX-License-Identifier: Apache-2.0
#include "act/units/unit_properties_message.h"

#include <systemd/sd-bus.h>

namespace headroom::act {
namespace {

int append(sd_bus_message* message, const UnitProperty& property) {
  struct Variant {
    sd_bus_message* message;
    int operator()(bool value) const { return sd_bus_message_append(message, "v", "b", value); }
    int operator()(std::uint64_t value) const {
      return sd_bus_message_append(message, "v", "t", value);
    }
    int operator()(const std::string& value) const {
      return sd_bus_message_append(message, "v", "s", value.c_str());
    }
    int operator()(const std::vector<std::uint8_t>& value) const {
      int r = sd_bus_message_open_container(message, 'v', "ay");
      if (r >= 0) r = sd_bus_message_append_array(message, 'y', value.data(), value.size());
      return r < 0 ? r : sd_bus_message_close_container(message);
    }
  };
  int r = sd_bus_message_open_container(message, 'r', "sv");
  if (r >= 0) r = sd_bus_message_append(message, "s", property.name.c_str());
  if (r >= 0) r = std::visit(Variant{message}, property.value);
  return r < 0 ? r : sd_bus_message_close_container(message);
}

}  // namespace

int append(sd_bus_message* message, const UnitProperties& properties) {
  int r = sd_bus_message_open_container(message, 'a', "(sv)");
  for (const UnitProperty& property : properties)
    if (r >= 0) r = append(message, property);
  return r < 0 ? r : sd_bus_message_close_container(message);
}

}  // namespace headroom::act
