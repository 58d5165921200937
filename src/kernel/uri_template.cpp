#include "kernel/uri_template.hpp"

namespace glove::kernel {

// Goes back to the last expression only, so the time is bounded by the product of both lengths too.
auto fits_template(std::string_view uri, std::string_view pattern, std::size_t& steps) noexcept
    -> bool {
    std::size_t at = 0, in = 0, retry = uri.npos, after = 0;
    bool crosses = false; // the last expression may stand for a slash
    for (;;) {
        if (steps == 0) return false;
        --steps;
        if (in < pattern.size() && pattern[in] == '{') {
            const auto end = pattern.find('}', in);
            if (end == pattern.npos) return false;
            const char kind = pattern[in + 1];
            crosses = kind == '+' || kind == '#' || kind == '/';
            in = after = end + 1;
            retry = at;
            continue;
        }
        if (at == uri.size() && in == pattern.size()) return true;
        if (at < uri.size() && in < pattern.size() && uri[at] == pattern[in]) {
            ++at;
            ++in;
            continue;
        }
        if (retry == uri.npos || retry == uri.size() || (uri[retry] == '/' && !crosses))
            return false;
        at = ++retry;
        in = after;
    }
}

} // namespace glove::kernel
