// The rules of a session policy that join two members, by part. Each names the member that breaks
// one.
#pragma once
#include <glove/supervisor/session_policy.hpp>
#include <glove/wire/rules.hpp>

namespace glove::supervisor {

[[nodiscard]] auto check_template(const runtime_template& what, const session_rules& all,
                                  const wire::place& at) -> result<>;
[[nodiscard]] auto check_aliases(const std::vector<path_alias>& all, const wire::place& at)
    -> result<>;

} // namespace glove::supervisor
