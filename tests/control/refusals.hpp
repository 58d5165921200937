// The code of a refusal, for tests to compare.
#pragma once
#include <glove/control/answer.hpp>
#include <string>

namespace glove::test {

template<class T> auto code_of(const control::answer<T>& out) -> std::string {
    return out ? "" : std::string{to_string(out.error().code)};
}

} // namespace glove::test
