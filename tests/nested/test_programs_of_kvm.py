"""The GoogleTest programs that use a real KVM, run again where it is kvm_amd; meson's suite `kvm`.

On a host whose own KVM is fit they also run there, with the unit tests.
"""

import unittest

import nested

for name, program in nested.kvm_programs().items():
    globals()[name] = nested.gtest_class(name, program)

if __name__ == "__main__":
    unittest.main()
