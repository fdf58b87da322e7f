#include "index/elf_table/arrow.h"

#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix::detail::index::elf_table {
namespace {

[[noreturn]] void throw_invalid(const std::string& message) {
  throw Error(Errc::invalid_argument, "Arrow: " + message);
}

std::string_view text_of(const char* text) { return text == nullptr ? "" : text; }

/// The type of a column of this format; throws unsupported.
ElfType type_of(const ArrowSchema& schema) {
  const std::string_view format = text_of(schema.format);
  if (schema.dictionary == nullptr) {
    if (format == "i") return ElfType::int32;
    if (format == "l") return ElfType::int64;
    if (format == "g") return ElfType::float64;
    if (format == "tdD") return ElfType::date;
    if (format == "u" || format == "U" || format == "z" || format == "Z") return ElfType::string;
  }
  throw Error(Errc::unsupported,
              fmt::format("Arrow: column '{}' has the format '{}'{}, which an ElfTable has not; "
                          "cast it to int32, int64, double, date32 or a string",
                          text_of(schema.name), format,
                          schema.dictionary != nullptr ? " with a dictionary" : ""));
}

void require_struct(const ArrowSchema& schema) {
  if (schema.release == nullptr) throw_invalid("the schema was released");
  if (text_of(schema.format) != "+s") {
    throw_invalid(
        fmt::format("the schema has the format '{}'; a struct (+s) is needed, with a "
                    "child for each column",
                    text_of(schema.format)));
  }
}

/// Throws if any of the rows is null. `validity` is a bit for each, set if it is not; or null.
void require_no_nulls(const ArrowArray& array, std::int64_t first, std::int64_t rows,
                      std::string_view column) {
  const auto* const validity = array.n_buffers > 0 && array.buffers != nullptr
                                   ? static_cast<const std::uint8_t*>(array.buffers[0])
                                   : nullptr;
  if (array.null_count == 0 || validity == nullptr) return;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t bit = first + row;
    if ((validity[bit / 8] >> bit % 8 & 1) == 0)
      throw_invalid(
          fmt::format("row {} of column '{}' is null; an ElfTable has no nulls", row, column));
  }
}

/// One child of a struct array, from the struct's first row on.
class Child {
 public:
  Child(const ArrowSchema& schema, const ArrowArray& parent, const ArrowArray& array)
      : name_(text_of(schema.name)),
        format_(text_of(schema.format)),
        array_(array),
        first_(parent.offset + array.offset),
        rows_(parent.length) {
    const std::int64_t buffers = type_of(schema) == ElfType::string ? 3 : 2;
    if (array.n_buffers != buffers || array.offset < 0 || array.length < parent.offset + rows_) {
      throw_invalid(
          fmt::format("column '{}' has {} buffers of {} rows; {} of at least {} rows are "
                      "needed",
                      name_, array.n_buffers, array.length, buffers, parent.offset + rows_));
    }
    if (rows_ > 0 && (array.buffers == nullptr || array.buffers[1] == nullptr))
      throw_invalid(fmt::format("column '{}' has no values", name_));
    require_no_nulls(array, first_, rows_, name_);
  }

  template <class T>
  std::span<const T> values() const {
    if (rows_ == 0) return {};
    return {static_cast<const T*>(array_.buffers[1]) + first_, static_cast<std::size_t>(rows_)};
  }

  std::vector<std::string_view> strings() const {
    return format_ == "U" || format_ == "Z" ? views<std::int64_t>() : views<std::int32_t>();
  }

 private:
  template <class Offset>
  std::vector<std::string_view> views() const {
    std::vector<std::string_view> views;
    if (rows_ == 0) return views;
    const auto* const ends = static_cast<const Offset*>(array_.buffers[1]) + first_;
    const auto* const bytes = static_cast<const char*>(array_.buffers[2]);
    views.reserve(static_cast<std::size_t>(rows_));
    for (std::int64_t row = 0; row < rows_; ++row) {
      const Offset begin = ends[row], end = ends[row + 1];
      if (begin < 0 || end < begin || (bytes == nullptr && end > begin))
        throw_invalid(fmt::format("column '{}' has offsets that descend", name_));
      views.push_back(begin == end
                          ? std::string_view()
                          : std::string_view(bytes + begin, static_cast<std::size_t>(end - begin)));
    }
    return views;
  }

  const std::string_view name_;
  const std::string_view format_;
  const ArrowArray& array_;
  const std::int64_t first_;
  const std::int64_t rows_;
};

std::int64_t child_of(const ArrowSchema& schema, const ElfColumn& column) {
  for (std::int64_t i = 0; i < schema.n_children; ++i) {
    if (text_of(schema.children[i]->name) != column.name) continue;
    const ElfType type = type_of(*schema.children[i]);
    if (type == column.type) return i;
    throw_invalid(fmt::format("column '{}' is of type {}, and the array's child of type {}",
                              column.name, to_string(column.type), to_string(type)));
  }
  throw_invalid(fmt::format("the array has no child '{}'", column.name));
}

}  // namespace

Schema columns_of(const ArrowSchema& schema) {
  require_struct(schema);
  Schema columns;
  for (std::int64_t i = 0; i < schema.n_children; ++i)
    columns.push_back(
        {std::string(text_of(schema.children[i]->name)), type_of(*schema.children[i])});
  require_schema(columns);
  return columns;
}

ArrowColumns::ArrowColumns(const Schema& columns, const ArrowSchema& schema,
                           const ArrowArray& array) {
  require_struct(schema);
  if (array.release == nullptr) throw_invalid("the array was released");
  if (array.n_children != schema.n_children || array.length < 0 || array.offset < 0)
    throw_invalid("the array is not of the schema");
  require_no_nulls(array, array.offset, array.length, "struct");
  for (const ElfColumn& column : columns) {
    const std::int64_t i = child_of(schema, column);
    const Child child(*schema.children[i], array, *array.children[i]);
    switch (column.type) {
      case ElfType::int32: data_.emplace_back(child.values<std::int32_t>()); break;
      case ElfType::int64: data_.emplace_back(child.values<std::int64_t>()); break;
      case ElfType::float64: data_.emplace_back(child.values<double>()); break;
      case ElfType::date: data_.emplace_back(child.values<ElfDate>()); break;
      case ElfType::string:
        data_.emplace_back(
            std::span<const std::string_view>(strings_.emplace_back(child.strings())));
        break;
    }
  }
}

static_assert(sizeof(ElfDate) == sizeof(std::int32_t));

/// What a child's private_data leads to.
struct ArrowRows::Column {
  std::string name;
  std::string format;
  ElfType type;
  std::vector<std::byte> values;      // of numbers
  std::vector<std::int64_t> ends{0};  // of strings
  std::vector<std::int32_t> short_ends;
  std::string bytes;
  std::vector<const void*> buffers;

  void add(const ElfValue& value) {
    if (const auto* string = std::get_if<std::string>(&value)) {
      bytes += *string;
      ends.push_back(static_cast<std::int64_t>(bytes.size()));
      return;
    }
    std::visit(
        [&](const auto& number) {
          if constexpr (std::is_trivially_copyable_v<std::decay_t<decltype(number)>>) {
            const auto raw = std::as_bytes(std::span(&number, 1));
            values.insert(values.end(), raw.begin(), raw.end());
          }
        },
        value);
  }

  void finish(bool utf8) {
    if (type != ElfType::string) {
      buffers = {nullptr, values.data()};
      return;
    }
    const bool is_long = bytes.size() > std::numeric_limits<std::int32_t>::max();
    format = is_long ? (utf8 ? "U" : "Z") : (utf8 ? "u" : "z");
    if (!is_long) short_ends.assign(ends.begin(), ends.end());
    buffers = {nullptr, is_long ? static_cast<const void*>(ends.data()) : short_ends.data(),
               bytes.data()};
  }
};

namespace {

const char* format_of(ElfType type) {
  switch (type) {
    case ElfType::int32: return "i";
    case ElfType::int64: return "l";
    case ElfType::float64: return "g";
    case ElfType::date: return "tdD";
    default: return "u";
  }
}

/// What a structure owns, which its release frees. Children are released before, unless their user
/// has moved them out: then their own release is null here.
template <class Structure>
struct Parts {
  std::vector<Structure> children;
  std::vector<Structure*> pointers;
  std::vector<std::string> texts;
  std::vector<const void*> buffers;
  std::shared_ptr<void> data;
};

template <class Structure>
void release(Structure* structure) {
  const std::unique_ptr<Parts<Structure>> owned(
      static_cast<Parts<Structure>*>(structure->private_data));
  for (Structure& child : owned->children) {
    if (child.release != nullptr) child.release(&child);
  }
  structure->release = nullptr;
}

/// Gives a structure what it owns, with room for `children` children, which the caller makes.
template <class Structure>
void own(Structure& structure, std::unique_ptr<Parts<Structure>> owned, std::size_t children) {
  owned->children.resize(children);
  for (Structure& child : owned->children) owned->pointers.push_back(&child);
  structure.n_children = static_cast<std::int64_t>(children);
  structure.children = owned->pointers.data();
  structure.release = release<Structure>;
  structure.private_data = owned.release();
}

void make_schema(ArrowSchema& schema, std::string name, std::string format, std::size_t children) {
  auto owned = std::make_unique<Parts<ArrowSchema>>();
  owned->texts = {std::move(format), std::move(name)};
  schema.format = owned->texts[0].c_str();
  schema.name = owned->texts[1].c_str();
  own(schema, std::move(owned), children);
}

void make_array(ArrowArray& array, std::uint64_t rows, std::vector<const void*> buffers,
                std::shared_ptr<void> data, std::size_t children) {
  auto owned = std::make_unique<Parts<ArrowArray>>();
  owned->buffers = std::move(buffers);
  owned->data = std::move(data);
  array.length = static_cast<std::int64_t>(rows);
  array.n_buffers = static_cast<std::int64_t>(owned->buffers.size());
  array.buffers = owned->buffers.data();
  own(array, std::move(owned), children);
}

/// A structure that is released unless it is taken.
template <class Structure>
struct Guarded {
  Structure value{};

  ~Guarded() {
    if (value.release != nullptr) value.release(&value);
  }
  Structure take() { return std::exchange(value, Structure{}); }
};

}  // namespace

ArrowRows::ArrowRows(const Schema& columns, bool utf8) : utf8_(utf8) {
  for (const ElfColumn& column : columns) {
    auto& data = data_.emplace_back(std::make_unique<Column>());
    data->name = column.name;
    data->type = column.type;
    data->format = format_of(column.type);
  }
}

ArrowRows::~ArrowRows() = default;

void ArrowRows::add(std::span<const ElfValue> row) {
  for (std::size_t i = 0; i < row.size(); ++i) data_[i]->add(row[i]);
  ++rows_;
}

void ArrowRows::move_to(ArrowSchema& schema, ArrowArray& array) {
  Guarded<ArrowSchema> whole_schema;
  Guarded<ArrowArray> whole_array;
  make_schema(whole_schema.value, "", "+s", data_.size());
  make_array(whole_array.value, rows_, {nullptr}, nullptr, data_.size());
  for (std::size_t i = 0; i < data_.size(); ++i) {
    const std::shared_ptr<Column> column = std::move(data_[i]);
    column->finish(utf8_);
    make_schema(*whole_schema.value.children[i], column->name, column->format, 0);
    make_array(*whole_array.value.children[i], rows_, column->buffers, column, 0);
  }
  schema = whole_schema.take();
  array = whole_array.take();
}

}  // namespace perdix::detail::index::elf_table
