// SPDX-License-Identifier: Apache-2.0
#include "kube/http_client.h"

#include "base/log/journal.h"
#include "config/yaml/yaml.h"

#include <algorithm>
#include <cassert>
#include <cctype>
#include <cerrno>
#include <memory>
#include <mutex>

#include <curl/curl.h>

namespace headroom::kube {
namespace {

using config::ServerConfig;

struct ListFree {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using List = std::unique_ptr<curl_slist, ListFree>;

void add(List& list, const std::string& line) {
  if (curl_slist* longer = curl_slist_append(list.get(), line.c_str())) {
    static_cast<void>(list.release());
    list.reset(longer);
  }
}

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && is_space(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && is_space(text.back()))
    text.remove_suffix(1);
  return text;
}

// The input and output of one transfer.
struct Transfer {
  CURL* curl;
  const HttpRequest& request;
  const std::stop_token& stop;
  HttpResponse response{};
  bool too_long = false;
  bool refused = false;  // by on_data
};

bool is_success(CURL* curl) {
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  return status >= 200 && status < 300;
}

std::size_t on_body(char* data, std::size_t, std::size_t size, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  if (transfer.request.on_data && is_success(transfer.curl)) {
    const bool taken = log::log_exceptions("take a response", [&] {
      transfer.refused = !transfer.request.on_data({data, size});
    });
    return taken && !transfer.refused ? size : 0;
  }
  if (transfer.response.body.size() + size > transfer.request.max_body) {
    transfer.too_long = true;
    return 0;
  }
  const bool kept =
      log::log_exceptions("read a response", [&] { transfer.response.body.append(data, size); });
  return kept ? size : 0;
}

// Keeps the headers of the last response: a "100 Continue" before it has its own headers.
void add_header(std::string_view line, HttpHeaders& headers) {
  if (line.starts_with("HTTP/")) headers.clear();
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  std::string name(line.substr(0, colon));
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  headers.emplace_back(std::move(name), trimmed(line.substr(colon + 1)));
}

std::size_t on_header(char* data, std::size_t, std::size_t size, void* context) {
  auto& headers = static_cast<Transfer*>(context)->response.headers;
  const bool kept = log::log_exceptions("read a response", [&] {
    add_header({data, size}, headers);
  });
  return kept ? size : 0;
}

int on_progress(void* context, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Transfer*>(context)->stop.stop_requested() ? 1 : 0;
}

bool has_header(const HttpHeaders& headers, std::string_view wanted) {
  return std::ranges::any_of(headers, [&](const auto& header) { return header.first == wanted; });
}

Result<List> headers_of(const ServerConfig& server, const HttpRequest& request) {
  List list;
  if (!has_header(request.headers, "Accept")) add(list, "Accept: application/json");
  for (const auto& [name, value] : request.headers)
    add(list, name + ": " + value);
  // Without this, curl sends "Expect: 100-continue" before a long body and waits up to a second.
  add(list, "Expect:");
  if (!server.token_file.empty()) {
    const auto token = config::read_file(server.token_file);
    if (!token) return failure("token " + server.token_file.string() + ": " + token.error().what);
    const std::string_view word = trimmed(*token);
    if (word.empty()) return failure("token " + server.token_file.string() + ": it is empty");
    if (std::ranges::any_of(word, [](unsigned char c) { return c <= ' ' || c > '~'; }))
      return failure("token " + server.token_file.string() + ": expected one word of ASCII");
    add(list, "Authorization: Bearer " + std::string(word));
  }
  return list;
}

// For tlsServerName: connects to the URL's address, but requests and verifies the other name.
struct RequestTarget {
  std::string url;
  List connect_to;
};

RequestTarget resolve_target(const ServerConfig& server, const std::string& path) {
  if (server.tls_name.empty() || !server.url.starts_with("https://"))
    return {server.url + path, nullptr};
  // A colon before a bracket is part of an IPv6 address.
  const std::string authority = server.url.substr(8);
  const std::size_t colon = authority.rfind(':');
  const bool has_port =
      colon != std::string::npos && authority.find(']', colon) == std::string::npos;
  const std::string host = authority.substr(0, has_port ? colon : std::string::npos);
  const std::string port = has_port ? authority.substr(colon) : ":443";
  RequestTarget target{"https://" + server.tls_name + port + path, nullptr};
  add(target.connect_to, "::" + host + port);
  return target;
}

template <class Value>
void set(CURL* curl, CURLoption option, Value value) {
  [[maybe_unused]] const CURLcode code = curl_easy_setopt(curl, option, value);
  assert(code == CURLE_OK);
}

void set_path(CURL* curl, CURLoption option, const std::filesystem::path& path) {
  if (!path.empty()) set(curl, option, path.c_str());
}

void set_trust(CURL* curl, const ServerConfig& server) {
  set(curl, CURLOPT_SSL_VERIFYPEER, server.insecure ? 0L : 1L);
  set(curl, CURLOPT_SSL_VERIFYHOST, server.insecure ? 0L : 2L);
  set_path(curl, CURLOPT_CAINFO, server.ca_file);
  // curl caches CAs by path for a day, but a rotated CA keeps its path.
  set(curl, CURLOPT_CA_CACHE_TIMEOUT, 0L);
  set_path(curl, CURLOPT_SSLCERT, server.client_cert);
  set_path(curl, CURLOPT_SSLKEY,
           server.client_key.empty() ? server.client_cert : server.client_key);
}

void set_body(CURL* curl, const HttpRequest& request) {
  if (request.method == "GET" && request.body.empty()) {
    set(curl, CURLOPT_HTTPGET, 1L);
    return;
  }
  set(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  if (request.body.empty() && request.method != "POST") return;
  set(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  set(curl, CURLOPT_POSTFIELDS, request.body.data());
}

Error request_error(const ServerConfig& server, const Transfer& transfer, CURLcode code,
                    const char* details) {
  const std::string doing = transfer.request.method + " " + server.url + transfer.request.path;
  if (transfer.too_long)
    return {doing + ": the answer is longer than " + std::to_string(transfer.request.max_body) +
            " bytes"};
  if (transfer.refused) return {doing + ": the answer is not understood"};
  if (code == CURLE_ABORTED_BY_CALLBACK) return {doing + ": aborted", ECANCELED};
  return {doing + ": " + (*details ? details : curl_easy_strerror(code))};
}

void start_curl() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

}  // namespace

const std::string* HttpResponse::header(std::string_view name) const {
  const auto found =
      std::ranges::find_if(headers, [&](const auto& header) { return header.first == name; });
  return found == headers.end() ? nullptr : &found->second;
}

HttpClient::HttpClient(ServerConfig server) : server_(std::move(server)) {
  start_curl();
  curl_ = curl_easy_init();
}

HttpClient::~HttpClient() {
  if (curl_) curl_easy_cleanup(static_cast<CURL*>(curl_));
}

Result<HttpResponse> HttpClient::http(const HttpRequest& request, const std::stop_token& stop) {
  CURL* curl = static_cast<CURL*>(curl_);
  if (!curl) return failure("start libcurl");
  auto headers = headers_of(server_, request);
  if (!headers) return tl::make_unexpected(headers.error());
  const RequestTarget target = resolve_target(server_, request.path);
  Transfer transfer{curl, request, stop};
  char details[CURL_ERROR_SIZE] = "";

  curl_easy_reset(curl);  // the connection stays
  set(curl, CURLOPT_URL, target.url.c_str());
  if (target.connect_to) set(curl, CURLOPT_CONNECT_TO, target.connect_to.get());
  set(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  set(curl, CURLOPT_NOSIGNAL, 1L);  // the process has other threads
  set(curl, CURLOPT_PROXY, "");     // the kubelet and the API server are reached without a proxy
  set(curl, CURLOPT_TIMEOUT_MS,
      static_cast<long>(std::chrono::ceil<std::chrono::milliseconds>(server_.timeout).count()));
  set(curl, CURLOPT_HTTPHEADER, headers->get());
  set(curl, CURLOPT_USERAGENT, "headroom-kube/" HEADROOM_VERSION);
  set(curl, CURLOPT_ACCEPT_ENCODING, "");  // every built-in one: a list of pods compresses well
  set_trust(curl, server_);
  set_body(curl, request);
  set(curl, CURLOPT_WRITEFUNCTION, &on_body);
  set(curl, CURLOPT_WRITEDATA, &transfer);
  set(curl, CURLOPT_HEADERFUNCTION, &on_header);
  set(curl, CURLOPT_HEADERDATA, &transfer);
  set(curl, CURLOPT_NOPROGRESS, 0L);
  set(curl, CURLOPT_XFERINFOFUNCTION, &on_progress);
  set(curl, CURLOPT_XFERINFODATA, &transfer);
  set(curl, CURLOPT_ERRORBUFFER, details);

  const CURLcode code = curl_easy_perform(curl);
  set(curl, CURLOPT_ERRORBUFFER, static_cast<char*>(nullptr));  // `details` ends with this call
  if (code != CURLE_OK) return tl::make_unexpected(request_error(server_, transfer, code, details));
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &transfer.response.status);
  return std::move(transfer.response);
}

Result<HttpResponse> http(const ServerConfig& server, const HttpRequest& request,
                          const std::stop_token& stop) {
  return HttpClient(server).http(request, stop);
}

}  // namespace headroom::kube
