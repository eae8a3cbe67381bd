// SPDX-License-Identifier: Apache-2.0
// Precompiled for the tests.
#pragma once

#include "userspace.h"

#include <gtest/gtest.h>
