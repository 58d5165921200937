// Below which directories the operator lets paths be exposed, and how: one owner-only file, read
// once and frozen for the life of the process.
//
// Guarantees: each root is pinned by descriptor; whatever is opened below one is strictly below it,
// reached without a link, a magic link or another mount, and is a regular file or a directory.
// Errors name the file, the member and the rule, and never quote a value.
#pragma once
#include <cstdint>
#include <glove/base/error.hpp>
#include <glove/supervisor/exposure.hpp>
#include <glove/sys/files.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace glove::supervisor {

struct exposure_root {
    std::string root_id;
    std::string host_root;
    std::vector<exposure_mode> allowed_modes; // sorted
    std::uint64_t max_ttl_secs = 0;
    std::vector<std::string> allowed_runtime_template_ids; // sorted
    auto operator==(const exposure_root&) const -> bool = default;
};

struct exposure_rules {
    std::uint8_t schema_version = 1;
    std::vector<exposure_root> roots;

    [[nodiscard]] auto find_root(std::string_view id) const -> const exposure_root*;
    auto operator==(const exposure_rules&) const -> bool = default;
};

// Every rule but those that look at the file system; lists come out sorted.
[[nodiscard]] auto parse_exposure_rules(std::string_view text) -> result<exposure_rules>;
[[nodiscard]] auto exposure_rules_text(exposure_rules rules) -> result<std::string>;

// Whether the rules as they are now allow what was asked for, or was allowed once. Errors:
// exposure.root, exposure.ttl, exposure.mode, exposure.template.
[[nodiscard]] auto check_allowed(const exposure_rules& rules, const create_exposure& what)
    -> result<>;
[[nodiscard]] auto check_allowed(const exposure_rules& rules, const exposure_descriptor& what)
    -> result<>;

struct exposed_source {
    sys::unique_fd pin;
    sys::file_facts facts;
    sys::file_facts parent; // of the directory that it was found in
};

class exposure_policy {
public:
    [[nodiscard]] static auto load(const std::string& path) -> result<exposure_policy>;
    [[nodiscard]] static auto freeze(exposure_rules rules) -> result<exposure_policy>;

    [[nodiscard]] auto rules() const noexcept -> const exposure_rules& { return rules_; }
    // `host_path` must be strictly below the root. Errors: exposure.root, exposure.path, source.*.
    [[nodiscard]] auto open(std::string_view root_id, const std::string& host_path) const
        -> result<exposed_source>;

private:
    exposure_policy(exposure_rules rules, std::vector<sys::unique_fd> roots)
        : rules_{std::move(rules)}, roots_{std::move(roots)} {}
    exposure_rules rules_;
    std::vector<sys::unique_fd> roots_; // of each root
};

} // namespace glove::supervisor
