# The .deb, made by CPack of the tree that packaging/bundle lays out (CPACK_INSTALLED_DIRECTORIES), with what Debian's
# libraries in it depend on found by dpkg-shlibdeps.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME cleave)
set(CPACK_PACKAGE_VENDOR Cleave)
set(CPACK_PACKAGE_CONTACT "The Cleave authors <cleave@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "shows how a Transformer splits across GPUs, why, and whether it works")
set(CPACK_INSTALL_CMAKE_PROJECTS "")
set(CPACK_PACKAGING_INSTALL_PREFIX /)
set(CPACK_SET_DESTDIR ON)
set(CPACK_STRIP_FILES OFF)  # they are
set(CPACK_PACKAGE_DESCRIPTION
    "Cleave opens a model folder or an exported PyTorch program, finds out how
each of its tensors can be split across GPUs, draws the model coloured by
that, says why, and runs the split model to check that it computes the same.
.
Its own LibTorch for CPUs is inside. CLEAVE_TORCH_DIR names another one of
the same version, for ranks on GPUs.")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE amd64)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# What no library names; plugins of Qt and Graphviz are in the packages of their libraries.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "fonts-dejavu-core")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "ca-certificates, graphviz, shared-mime-info, desktop-file-utils")
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
set(CPACK_THREADS 0)
