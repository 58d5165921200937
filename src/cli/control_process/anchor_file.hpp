// How far somebody has verified the receipts of a service: a file of the owner alone.
//
// Guarantees: it is replaced as a whole, so a reader sees the old anchor or the new one; one that
// is damaged is refused and never taken for the beginning.
#pragma once
#include <glove/base/error.hpp>
#include <glove/control/receipt.hpp>
#include <optional>
#include <string>

namespace glove::cli {

[[nodiscard]] auto default_anchor_file() -> result<std::string>;
// Nothing: there is no such file.
[[nodiscard]] auto read_anchor(const std::string& file)
    -> result<std::optional<control::receipt_anchor>>;
[[nodiscard]] auto write_anchor(const std::string& file, const control::receipt_anchor& what)
    -> result<>;
// As it stands in a request.
[[nodiscard]] auto anchor_json(const control::receipt_anchor& what) -> std::string;

} // namespace glove::cli
