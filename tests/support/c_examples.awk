# Makes one C program of the blocks ```c in pages of the documents: a function for each, called in their order.
# An error of the compiler names page and line, as #line says.
BEGIN {
    print "#include \"consumer/client/bourse.h\""
    print "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
}
in_block && /^```$/ { print "}\n"; in_block = 0; next }
in_block { print; next }
/^```c$/ {
    printf "static void example_%d(void)\n{\n#line %d \"%s\"\n", ++count, FNR + 1, FILENAME
    in_block = 1
}
END {
    if (count == 0) {
        print "#error no page has a C example"
    }
    print "int main(void)\n{"
    for (i = 1; i <= count; i++) {
        printf "    example_%d();\n", i
    }
    print "    return 0;\n}"
}
