// SPDX-License-Identifier: Apache-2.0
// The certificate and the key that headroom-kube serves metrics with: those of two files, or a
// self-signed pair that is made at start.
#pragma once

#include <headroom/result.h>

#include <filesystem>
#include <string>

namespace headroom::kube {

// GnuTLS' priorities of what is served with it: TLS 1.2 and later.
inline constexpr const char* kTlsPriorities = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

struct ServerCertificate {
  std::string certificate;  // PEM; may be a chain
  std::string key;          // PEM
  friend bool operator==(const ServerCertificate&, const ServerCertificate&) = default;
};

// An error names the file that cannot be read, or says that the key is not the certificate's.
Result<ServerCertificate> read_certificate(const std::filesystem::path& certificate_file,
                                           const std::filesystem::path& key_file);

// ECDSA P-256, for `host_name`, valid for a year: like the kubelet's own. A client can check it
// only against this certificate itself.
Result<ServerCertificate> make_self_signed(const std::string& host_name);

}  // namespace headroom::kube
