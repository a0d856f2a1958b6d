#include "formats/model_folder.h"

#include "base/json.h"
#include "base/link_loops.h"
#include "formats/weight_files.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace cleave::formats {
namespace {

constexpr std::string_view kConfigFile = "config.json";
constexpr JsonLimits kConfigLimits{.allowsWideIntegers = true};

/// Absolute and without a trailing slash, so that ranks on other hosts find it and its last part names the model.
/// Symlinks keep their names, unless `..` follows one.
fs::path absoluteFolder(const fs::path& folder) {
  std::error_code error;
  const fs::path absolute = fs::absolute(folder, error);
  const bool climbs = std::find(absolute.begin(), absolute.end(), "..") != absolute.end();
  fs::path normal = climbs ? fs::canonical(absolute, error) : absolute.lexically_normal();
  if (!normal.has_filename() && normal.has_relative_path()) normal = normal.parent_path();
  return normal;
}

tl::unexpected<Error> refuseFile(const fs::path& file) {
  const std::string suffix = file.extension().string();
  if (suffix == ".safetensors") {
    return fail(ErrorCode::BadInput, "{} is a weights file. Open its folder, with its config.json.", file.string());
  }
  return fail(ErrorCode::BadInput,
              "{} is not a model. Open a folder with a config.json (and *.safetensors), or that config.json.",
              file.string());
}

/// The folder of `path`: itself, or the folder of the config.json.
Result<fs::path> folderOf(const fs::path& path) {
  if (path.empty())
    return fail(ErrorCode::BadInput,
                "The path of the model is empty. Give a folder with a config.json (and *.safetensors).");
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    CLEAVE_TRY_VOID(refuseLinkLoop(path, error));
    if (status.type() != fs::file_type::not_found)
      return fail(ErrorCode::BadInput, "Cannot open {}: {}.", path.string(), error.message());
    return fail(ErrorCode::BadInput, "{} does not exist. Give a folder with a config.json (and *.safetensors).",
                path.string());
  }
  if (fs::is_directory(status)) return absoluteFolder(path);
  if (path.filename() != kConfigFile) return refuseFile(path);
  return absoluteFolder(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

/// Why a folder without config.json is not a model, from its files.
tl::unexpected<Error> refuseWithoutConfig(const fs::path& folder) {
  bool isEmpty = true;
  std::string adapter, weights, gguf, original;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    isEmpty = false;
    const std::string name = it->path().filename().string();
    if (name == "adapter_config.json") adapter = name;
    if (name == "params.json") original = name;
    if (name.ends_with(".gguf")) gguf = name;
    if (name.ends_with(".safetensors") || name.ends_with(".bin")) weights = name;
  }
  const std::string where = folder.string();
  if (error) return fail(ErrorCode::BadInput, "Cannot list {}: {}.", where, error.message());
  if (isEmpty)
    return fail(ErrorCode::BadInput, "{} is empty. A model folder needs a config.json (and *.safetensors).", where);
  if (!adapter.empty()) {
    return fail(ErrorCode::BadInput,
                "{} holds an adapter ({}), not a model. Merge it into its base model and open that.", where, adapter);
  }
  if (!gguf.empty()) {
    return fail(ErrorCode::BadInput,
                "{} holds a GGUF file ({}), which Cleave does not read. Open the model's safetensors folder with its "
                "config.json.",
                where, gguf);
  }
  if (!original.empty()) {
    return fail(ErrorCode::BadInput, "{} has a {}, but no config.json. Open the model in the format of transformers.",
                where, original);
  }
  if (!weights.empty()) {
    return fail(ErrorCode::BadInput,
                "{} has weights ({}), but no config.json to build the model. Add the model's config.json.", where,
                weights);
  }
  return fail(ErrorCode::BadInput, "{} has no config.json, so it is not a model folder. Add the model's config.json.",
              where);
}

Result<nlohmann::json> readConfig(const fs::path& folder) {
  const fs::path file = folder / kConfigFile;
  std::error_code error;
  if (!fs::exists(file, error)) {
    CLEAVE_TRY_VOID(refuseLinkLoop(file, error));
    if (fs::is_symlink(file, error)) {
      return fail(ErrorCode::BadInput, "{} is a link to {}, which does not exist. Download the model again.",
                  file.string(), fs::read_symlink(file, error).string());
    }
    return refuseWithoutConfig(folder);
  }
  if (fs::is_directory(file, error)) {
    return fail(ErrorCode::BadInput,
                "{} is a directory, but the model's config must be a file. Download the model "
                "again.",
                file.string());
  }
  CLEAVE_TRY(nlohmann::json config, readJsonFile(file, kConfigLimits));
  CLEAVE_TRY_VOID(JsonObject::of(config, file.string()));
  return config;
}

Result<void> addFile(ModelFolder& model, const std::string& name) {
  CLEAVE_TRY(const SafetensorsFile file, openWeights(model.path, name));
  for (const auto& [tensor, source] : file.tensors()) {
    const auto [known, isNew] = model.tensors.try_emplace(tensor, source);
    if (isNew) {
      known->second.file = name;
      continue;
    }
    return fail(ErrorCode::BadInput,
                "{}: tensor {} is in {} and in {}. Remove the file that does not belong to the model.",
                model.path.string(), quotedText(tensor), known->second.file, name);
  }
  return {};
}

/// Every tensor must be in the file given by the index.
Result<void> checkAnnounced(const ModelFolder& model, const WeightFiles& weights) {
  for (const auto& [tensor, file] : weights.announced) {
    const auto found = model.tensors.find(tensor);
    if (found != model.tensors.end() && found->second.file == file) continue;
    const std::string instead = found == model.tensors.end() ? "" : fmt::format("; it is in {}", found->second.file);
    return fail(ErrorCode::BadInput,
                "{}: tensor {} is not in {}, although model.safetensors.index.json lists it there{}.",
                model.path.string(), quotedText(tensor), file, instead);
  }
  return {};
}

}  // namespace

Result<ModelFolder> openModelFolder(const fs::path& path, const Progress& progress) {
  ModelFolder model;
  CLEAVE_TRY(model.path, folderOf(path));
  CLEAVE_TRY(nlohmann::json config, readConfig(model.path));
  model.config = std::make_shared<const nlohmann::json>(std::move(config));
  CLEAVE_TRY(const WeightFiles weights, findWeightFiles(model.path));
  const std::int64_t total = std::ssize(weights.files);
  for (std::int64_t done = 0; done < total; ++done) {
    if (progress.cancelled()) return progress.cancelledError("reading the headers of the weights");
    progress.report("open", done, total);
    CLEAVE_TRY_VOID(addFile(model, weights.files[static_cast<std::size_t>(done)]));
  }
  CLEAVE_TRY_VOID(checkAnnounced(model, weights));
  return model;
}

}  // namespace cleave::formats
