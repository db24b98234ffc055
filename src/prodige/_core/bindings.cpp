// The thin layer between Python and the core: arrays come in without a copy, the GIL is released while the core works,
// and Ctrl-C is noticed. Arguments a caller can get wrong are checked with better words in Python; what is checked
// here is only what would otherwise crash.
#include "bindings.hpp"

NB_MODULE(_core, m) {
    using namespace prodige;
    m.doc() = "Native search core of prodige.";
    nb::set_leak_warnings(false);  // objects alive at exit are no bug: the interpreter does not free everything

    bind_search(m);
    bind_product(m);
    bind_forest(m);
    bind_fitting(m);
    bind_codes(m);
    bind_rows(m);
    bind_placing(m);
    bind_alternating(m);
    bind_text(m);
    bind_words(m);
    bind_ngrams(m);
}
