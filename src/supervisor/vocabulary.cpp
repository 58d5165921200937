// The words of the wire.
#include "supervisor/words.hpp"
#include <glove/wire/words.hpp>

namespace glove::supervisor {

auto to_string(access_kind of) noexcept -> std::string_view {
    return wire::name_in(access_words, of);
}
auto to_string(materialization_kind of) noexcept -> std::string_view {
    return wire::name_in(materialization_words, of);
}
auto to_string(cleanup_kind of) noexcept -> std::string_view {
    return wire::name_in(cleanup_words, of);
}
auto to_string(creation_kind of) noexcept -> std::string_view {
    return wire::name_in(creation_words, of);
}
auto to_string(backend_kind of) noexcept -> std::string_view {
    return wire::name_in(backend_words, of);
}

} // namespace glove::supervisor
