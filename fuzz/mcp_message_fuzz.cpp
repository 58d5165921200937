// Whatever the line: what is taken as a message is one by the reader of values too, with the same
// parts; what is refused is refused with a code of its own and an id that can stand in an answer;
// what is written of its parts is taken again.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <glove/mcp/message.hpp>
#include <glove/wire/utf8.hpp>

namespace {

using namespace glove;
using namespace glove::mcp;
namespace json = wire::json;

void require(bool holds) {
    if (!holds) std::abort();
}

void require_part(const json::value& tree, std::string_view name, const json::slice* part) {
    const auto* data = tree.find(name);
    require((data == nullptr) == (part == nullptr));
    if (part == nullptr) return;
    const auto again = json::read(part->text, message_limits());
    require(again && *again == *data);
}

void require_id(std::string_view id) {
    const auto read = json::read(id, message_limits());
    require(read && read->type() != json::kind::array && read->type() != json::kind::object &&
            read->type() != json::kind::boolean && id.size() <= 1024);
}

void check(const message_reader& reader, const message& read, std::string_view line) {
    const auto tree = json::read(line, message_limits());
    require(tree && tree->as_object() != nullptr);
    require(tree->find("jsonrpc") != nullptr && *tree->find("jsonrpc") == json::value{"2.0"});
    const bool called =
        read.kind == message_kind::request || read.kind == message_kind::notification;
    require(called == (tree->find("method") != nullptr));
    if (called) {
        require(*tree->find("method") == json::value{read.method});
        require_part(*tree, "params", read.params);
        require(read.result == nullptr && read.error == nullptr);
        if (read.params != nullptr)
            for (const auto& each : reader.outline().inside(*read.params))
                require(reader.member(read.params, each.name) == &each);
    } else {
        require_part(*tree, "result", read.result);
        require_part(*tree, "error", read.error);
        require((read.result == nullptr) != (read.error == nullptr));
    }
    require(read.id.empty() == (read.kind == message_kind::notification));
    if (!read.id.empty()) {
        require_id(read.id);
        require(made_out_id(line) == read.id || line.contains('\\'));
    }
}

auto rewritten(const message& read) -> std::string {
    const auto text = [](const json::slice* of) { return of ? of->text : std::string_view{}; };
    switch (read.kind) {
    case message_kind::request: return request_text(read.id, read.method, text(read.params));
    case message_kind::notification: return notification_text(read.method, text(read.params));
    case message_kind::answer: return answer_text(read.id, text(read.result));
    case message_kind::failure: return failure_text(read.id, text(read.error));
    }
    return {};
}

} // namespace

extern "C" auto LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) -> int {
    const std::string_view line{reinterpret_cast<const char*>(data), size};
    const auto found = made_out_id(line);
    require_id(found);
    message_reader reader;
    const auto read = reader.read(line);
    if (!read) {
        require_id(read.error().id);
        require(!read.error().words.empty() && wire::is_utf8(read.error().words));
        const auto answer = failure_text(read.error().id, read.error().number, read.error().words);
        require(json::read(answer, message_limits()).has_value());
        return 0;
    }
    check(reader, *read, line);
    const auto again = rewritten(*read);
    message_reader second;
    const auto copy = second.read(again);
    require(copy && copy->kind == read->kind && copy->id == read->id &&
            copy->method == read->method);
    require(rewritten(*copy) == again);
    return 0;
}
