// The tool servers of a run, in the words of its description.
//
// Guarantees: neither the value of a variable nor what may be a secret among a server's words is
// ever shown.
#pragma once
#include <glove/run/exec.hpp>
#include <glove/wire/json_writer.hpp>
#include <string>
#include <vector>

namespace glove::run {

// The words that start a server, without what may be a secret of it: what follows an option such
// as --token, the value of NAME=VALUE, and who asks in a URL.
[[nodiscard]] auto shown_words(const std::vector<std::string>& argv) -> std::vector<std::string>;

// The member `mediation`. `rules` are in the words of glove-mediator; null: not asked for.
void write_mediation(wire::json::writer& w, const mediation_request& request,
                     const std::vector<std::string>* rules);
[[nodiscard]] auto tools_text(const mediation_request& request,
                              const std::vector<std::string>& rules) -> std::string;

} // namespace glove::run
