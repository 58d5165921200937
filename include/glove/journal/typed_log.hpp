// A log of one record type. The codec knows the form of a record, its digest and its key, if there
// is one; the log knows everything else.
//
// What is appended is first read back from its own text, so nothing is written that opening
// refuses.
#pragma once
#include <concepts>
#include <functional>
#include <glove/journal/log.hpp>
#include <memory>
#include <optional>
#include <utility>

namespace glove::journal {

template<class C>
concept record_codec = requires(C& codec, std::string_view text, typename C::record& record,
                                const typename C::record& fixed, const mark& last) {
    // Strictly: only what `seal` writes (and older forms), and only with the right digest.
    { codec.decode(text) } -> std::same_as<result<typename C::record>>;
    { codec.facts_of(fixed) } -> std::same_as<facts>;
    // Gives the record its place after `last` and its digest, and returns the payload.
    { codec.seal(record, last) } -> std::same_as<result<std::string>>;
    { codec.authenticate(text) } -> std::same_as<result<std::string>>;
};

template<record_codec C> class typed_log {
public:
    using record = typename C::record;
    using applier = std::function<result<>(record&&, origin)>;

    // `apply` gets every record that is on the disk, in order, and none that is appended later.
    [[nodiscard]] static auto open(storage& store, settings how, C codec, applier apply,
                                   const std::optional<mark>& vouched = {}) -> result<typed_log> {
        auto reader = std::make_unique<adapter>(std::move(codec), std::move(apply));
        GLOVE_TRY(auto opened, log::open(store, std::move(how), *reader, vouched));
        reader->last.reset();
        return typed_log{std::move(reader), std::move(opened)};
    }

    // The record as it is on the disk now.
    [[nodiscard]] auto append(record what) -> result<record> {
        return put(std::move(what), [this](std::string_view payload, const facts& f) {
            return log_.append(payload, f);
        });
    }
    [[nodiscard]] auto append(record what, reservation& from) -> result<record> {
        return put(std::move(what), [&](std::string_view payload, const facts& f) {
            return log_.append(payload, f, from);
        });
    }
    [[nodiscard]] auto read(std::uint64_t sequence) -> result<record> {
        GLOVE_TRY(const auto payload, log_.payload(sequence));
        return reader_->codec.decode(payload);
    }
    // Head, room, reservations, rotation.
    [[nodiscard]] auto core() noexcept -> log& { return log_; }
    [[nodiscard]] auto core() const noexcept -> const log& { return log_; }

private:
    struct adapter final : record_reader {
        adapter(C of, applier with) : codec{std::move(of)}, apply_to{std::move(with)} {}
        [[nodiscard]] auto read(std::string_view payload) -> result<facts> override {
            GLOVE_TRY(last, codec.decode(payload));
            return codec.facts_of(*last);
        }
        [[nodiscard]] auto apply(origin from) -> result<> override {
            return apply_to(*std::exchange(last, std::nullopt), from);
        }
        [[nodiscard]] auto authenticate(std::string_view bytes) -> result<std::string> override {
            return codec.authenticate(bytes);
        }
        C codec;
        applier apply_to;
        std::optional<record> last;
    };

    typed_log(std::unique_ptr<adapter> reader, log opened)
        : reader_{std::move(reader)}, log_{std::move(opened)} {}

    template<class Put> [[nodiscard]] auto put(record what, Put to_log) -> result<record> {
        GLOVE_TRY(const auto payload, reader_->codec.seal(what, log_.head()));
        GLOVE_TRY(auto again, reader_->codec.decode(payload));
        GLOVE_CHECK(to_log(payload, reader_->codec.facts_of(again)));
        return again;
    }

    std::unique_ptr<adapter> reader_;
    log log_;
};

} // namespace glove::journal
