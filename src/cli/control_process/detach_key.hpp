// The keys that leave a session to itself, found among what is typed.
//
// Guarantees: everything that was typed and is none of these keys comes out, in order; of keys that
// begin like them only those are held back that may still become them, and never a lone escape.
#pragma once
#include <cstddef>
#include <deque>
#include <glove/base/error.hpp>
#include <string>
#include <string_view>

namespace glove::cli {

class detach_key {
public:
    // "ctrl-p,ctrl-q", "^]", "x"; or "none", which never comes. Step: usage.
    [[nodiscard]] static auto named(std::string_view text) -> result<detach_key>;

    struct taken {
        std::string passed;    // goes to the session
        bool complete = false; // the keys were typed; what came behind them is dropped
    };
    // A terminal that tells keys as numbers (CSI u) is understood, when the key comes as a whole.
    [[nodiscard]] auto take(std::string_view typed) -> taken;

private:
    struct token {
        std::string text; // as it was typed
        char key;
    };
    [[nodiscard]] static auto next_token(std::string_view& typed) -> token;
    [[nodiscard]] auto may_become() const -> bool;

    std::string keys_; // empty: never
    std::deque<token> held_;
};

} // namespace glove::cli
