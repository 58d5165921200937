// Enumerators as they stand on the wire, and the rules that more than one table uses.
#pragma once
#include <glove/supervisor/vocabulary.hpp>
#include <glove/wire/fields.hpp>

namespace glove::supervisor {

inline constexpr wire::word<access_kind> access_words[] = {
    {"read", access_kind::read},
    {"ephemeral_write", access_kind::ephemeral_write},
    {"retained_write", access_kind::retained_write},
    {"direct_write", access_kind::direct_write},
};
inline constexpr wire::word<materialization_kind> materialization_words[] = {
    {"bind", materialization_kind::bind},
    {"snapshot", materialization_kind::snapshot},
    {"git_worktree", materialization_kind::git_worktree},
    {"copy", materialization_kind::copy},
};
inline constexpr wire::word<cleanup_kind> cleanup_words[] = {
    {"remove", cleanup_kind::remove},
    {"retain", cleanup_kind::retain},
};
inline constexpr wire::word<creation_kind> creation_words[] = {
    {"never", creation_kind::never},
    {"empty_directory", creation_kind::empty_directory},
    {"git_worktree", creation_kind::git_worktree},
};
inline constexpr wire::word<backend_kind> backend_words[] = {
    {"linux_production", backend_kind::linux_production},
    {"remote_linux_container", backend_kind::remote_linux_container},
    {"apple_container", backend_kind::apple_container},
    {"macos_experimental", backend_kind::macos_experimental},
};

// A name that becomes a component of a path: "." and ".." would lead elsewhere.
struct component_name {
    wire::text form_of;

    [[nodiscard]] constexpr auto form() const -> wire::shape { return form_of.form(); }
    [[nodiscard]] auto check(const std::string& in, const wire::place& at) const -> result<> {
        GLOVE_CHECK(form_of.check(in, at));
        if (in == "." || in == "..")
            return wire::detail::refuse(errc::invalid_input, "wire.grammar", at,
                                        "is the name of a directory itself");
        return {};
    }
    [[nodiscard]] auto read(const wire::json::value& in, std::string& out,
                            const wire::place& at) const -> result<> {
        GLOVE_CHECK(form_of.read(in, out, at));
        return check(out, at);
    }
    [[nodiscard]] auto take(wire::json::cursor& in, std::string& out) const -> bool {
        return form_of.take(in, out) && out != "." && out != "..";
    }
    void write(wire::json::writer& out, const std::string& in) const { form_of.write(out, in); }
};

inline constexpr component_name alias_name{wire::alias};
inline constexpr component_name exposure_name{wire::ident};
inline constexpr wire::integer positive{1};
inline constexpr wire::integer version_1{1, 1};

} // namespace glove::supervisor
