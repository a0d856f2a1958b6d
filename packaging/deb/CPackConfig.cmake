# CPack makes the .deb from the tree of packaging/bundle (CPACK_INSTALLED_DIRECTORIES). dpkg-shlibdeps finds its
# dependencies.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME cleave)
set(CPACK_PACKAGE_VENDOR Cleave)
set(CPACK_PACKAGE_CONTACT "The Cleave authors <cleave@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "splits a Transformer across GPUs, and explains and checks the split")
set(CPACK_INSTALL_CMAKE_PROJECTS "")
set(CPACK_PACKAGING_INSTALL_PREFIX /)
set(CPACK_SET_DESTDIR ON)
set(CPACK_STRIP_FILES OFF)  # packaging/bundle has stripped them
set(CPACK_PACKAGE_DESCRIPTION
    "Cleave opens a model folder or an exported PyTorch program, finds a split
of each tensor across GPUs, draws and explains it, and runs the split model
to check that it computes the same.
.
The package includes LibTorch for CPUs. Set CLEAVE_TORCH_DIR to another one
of the same version for ranks on GPUs.")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE amd64)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# No library depends on these. Plugins of Qt and Graphviz are in their libraries' packages.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "fonts-dejavu-core")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "ca-certificates, graphviz, shared-mime-info, desktop-file-utils")
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
set(CPACK_THREADS 0)
