// The judge of host names, under the names that this component uses.
#pragma once
#include <glove/base/host_name.hpp>

namespace glove::net {

using glove::flaw_of;
using glove::is_below;
using glove::is_name_character;
using glove::is_number_label;
using glove::longest_label;
using glove::name_flaw;

} // namespace glove::net
