//===- Leaves.cpp - names and storage of leaves as attributes -------------===//

#include "dialects/aten/Leaves.h"

using namespace mlir;

namespace monarch::aten {

ArrayAttr attributeOf(const std::vector<std::string> &names,
                      MLIRContext *context) {
  SmallVector<Attribute> attributes;
  for (const std::string &name : names)
    attributes.push_back(StringAttr::get(context, name));
  return ArrayAttr::get(context, attributes);
}

std::vector<std::string> namesOf(ArrayAttr names) {
  std::vector<std::string> result;
  for (StringAttr name : names.getAsRange<StringAttr>())
    result.push_back(name.str());
  return result;
}

StorageAttr attributeOf(const Storage &storage, MLIRContext *context) {
  return StorageAttr::get(context, storage.record, storage.offsetBytes,
                          storage.strides);
}

Storage storageOf(StorageAttr attribute) {
  return {attribute.getRecord().str(), attribute.getOffsetBytes(),
          attribute.getStrides().vec()};
}

} // namespace monarch::aten
