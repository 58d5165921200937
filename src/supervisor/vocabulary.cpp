// The words of the wire.
#include "supervisor/words.hpp"

namespace glove::supervisor {

namespace {

template<class E, std::size_t N>
[[nodiscard]] constexpr auto name_in(const wire::word<E> (&words)[N], E means) noexcept
    -> std::string_view {
    for (const auto& w : words)
        if (w.means == means) return w.name;
    return {};
}

} // namespace

auto to_string(access_kind of) noexcept -> std::string_view { return name_in(access_words, of); }
auto to_string(materialization_kind of) noexcept -> std::string_view {
    return name_in(materialization_words, of);
}
auto to_string(cleanup_kind of) noexcept -> std::string_view { return name_in(cleanup_words, of); }
auto to_string(creation_kind of) noexcept -> std::string_view {
    return name_in(creation_words, of);
}
auto to_string(backend_kind of) noexcept -> std::string_view { return name_in(backend_words, of); }

} // namespace glove::supervisor
