// An error of a file's content says in which file it is.
#pragma once
#include <glove/base/error.hpp>
#include <glove/base/text.hpp>
#include <string>

namespace glove::supervisor {

template<class T> [[nodiscard]] auto in_file(const std::string& path, result<T> what) -> result<T> {
    if (!what) what.error().detail = printable(path) + ": " + what.error().detail;
    return what;
}

} // namespace glove::supervisor
