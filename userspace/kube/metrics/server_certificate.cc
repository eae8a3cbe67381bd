// SPDX-License-Identifier: Apache-2.0
#include "kube/metrics/server_certificate.h"

#include <array>
#include <cerrno>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <type_traits>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

namespace headroom::kube {
namespace {

namespace fs = std::filesystem;

// gnutls's handles are pointers to incomplete types.
template <typename Handle, auto kFree>
struct Free {
  using pointer = Handle;
  void operator()(Handle handle) const { kFree(handle); }
};
template <typename Handle, auto kFree>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Free<Handle, kFree>>;
using PrivateKey = Owned<gnutls_x509_privkey_t, &gnutls_x509_privkey_deinit>;
using Certificate = Owned<gnutls_x509_crt_t, &gnutls_x509_crt_deinit>;
using Credentials = Owned<gnutls_certificate_credentials_t, &gnutls_certificate_free_credentials>;

tl::unexpected<Error> tls_failure(const std::string& doing, int code) {
  return failure(doing + ": " + ::gnutls_strerror(code));
}

Result<std::string> contents(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return errno_failure("open " + file.string(), errno);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

gnutls_datum_t datum(std::string& text) {
  return {.data = reinterpret_cast<unsigned char*>(text.data()),
          .size = static_cast<unsigned>(text.size())};
}

// What an export function writes as PEM.
template <typename Export>
Result<std::string> exported(Export export_to) {
  gnutls_datum_t out{};
  if (const int code = export_to(&out); code < 0) return tls_failure("write a certificate", code);
  std::string text(reinterpret_cast<const char*>(out.data), out.size);
  ::gnutls_free(out.data);
  return text;
}

Result<PrivateKey> new_key() {
  gnutls_x509_privkey_t handle = nullptr;
  if (const int code = ::gnutls_x509_privkey_init(&handle); code < 0)
    return tls_failure("make a key", code);
  PrivateKey key(handle);
  const unsigned curve = GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1);
  const int code = ::gnutls_x509_privkey_generate(key.get(), GNUTLS_PK_ECDSA, curve, 0);
  if (code < 0) return tls_failure("make a key", code);
  return key;
}

// The first error of the calls that describe and sign the certificate; 0: none.
int describe(gnutls_x509_crt_t certificate, gnutls_x509_privkey_t key,
             const std::string& host_name) {
  constexpr std::time_t kHour = 3600, kYear = 365 * 24 * kHour;
  const std::time_t now = std::time(nullptr);
  std::random_device random;
  std::array<unsigned char, 8> serial{};
  for (unsigned char& byte : serial)
    byte = static_cast<unsigned char>(random() & 0x7F);  // a positive number
  serial[0] |= 1;
  const auto size = static_cast<unsigned>(host_name.size());
  for (const int code :
       {::gnutls_x509_crt_set_version(certificate, 3),
        ::gnutls_x509_crt_set_serial(certificate, serial.data(), serial.size()),
        // A client's clock may be behind.
        ::gnutls_x509_crt_set_activation_time(certificate, now - kHour),
        ::gnutls_x509_crt_set_expiration_time(certificate, now + kYear),
        ::gnutls_x509_crt_set_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0,
                                        host_name.data(), size),
        ::gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_DNSNAME, host_name.data(),
                                               size, GNUTLS_FSAN_SET),
        // Without the second usage, OpenSSL does not take it for self-signed.
        ::gnutls_x509_crt_set_key_usage(certificate,
                                        GNUTLS_KEY_DIGITAL_SIGNATURE | GNUTLS_KEY_KEY_CERT_SIGN),
        ::gnutls_x509_crt_set_key_purpose_oid(certificate, GNUTLS_KP_TLS_WWW_SERVER, 0),
        ::gnutls_x509_crt_set_key(certificate, key),
        ::gnutls_x509_crt_sign2(certificate, certificate, key, GNUTLS_DIG_SHA256, 0)})
    if (code < 0) return code;
  return 0;
}

}  // namespace

Result<ServerCertificate> read_certificate(const fs::path& certificate_file,
                                           const fs::path& key_file) {
  auto certificate = contents(certificate_file);
  if (!certificate) return tl::make_unexpected(certificate.error());
  auto key = contents(key_file);
  if (!key) return tl::make_unexpected(key.error());
  gnutls_certificate_credentials_t handle = nullptr;
  if (const int code = ::gnutls_certificate_allocate_credentials(&handle); code < 0)
    return tls_failure("check a certificate", code);
  const Credentials credentials(handle);
  const gnutls_datum_t public_part = datum(*certificate), secret = datum(*key);
  const int code = ::gnutls_certificate_set_x509_key_mem(credentials.get(), &public_part, &secret,
                                                         GNUTLS_X509_FMT_PEM);
  if (code < 0)
    return tls_failure("use " + certificate_file.string() + " with the key " + key_file.string(),
                       code);
  return ServerCertificate{std::move(*certificate), std::move(*key)};
}

Result<ServerCertificate> make_self_signed(const std::string& host_name) {
  const auto key = new_key();
  if (!key) return tl::make_unexpected(key.error());
  gnutls_x509_crt_t handle = nullptr;
  if (const int code = ::gnutls_x509_crt_init(&handle); code < 0)
    return tls_failure("make a certificate", code);
  const Certificate certificate(handle);
  if (const int code = describe(certificate.get(), key->get(), host_name); code < 0)
    return tls_failure("make a certificate", code);
  auto text = exported([&](gnutls_datum_t* out) {
    return ::gnutls_x509_crt_export2(certificate.get(), GNUTLS_X509_FMT_PEM, out);
  });
  if (!text) return tl::make_unexpected(text.error());
  auto secret = exported([&](gnutls_datum_t* out) {
    return ::gnutls_x509_privkey_export2(key->get(), GNUTLS_X509_FMT_PEM, out);
  });
  if (!secret) return tl::make_unexpected(secret.error());
  return ServerCertificate{std::move(*text), std::move(*secret)};
}

}  // namespace headroom::kube
