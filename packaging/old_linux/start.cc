// SPDX-License-Identifier: Apache-2.0
// How a program starts. A newer glibc runs a program's constructors itself; one before 2.34 has the program bring a
// function that does, which the start that newer compilers give it lacks. Both call the function where there is one.
extern "C" {

using Function = void (*)(int, char**, char**);
extern Function __init_array_start[] __attribute__((visibility("hidden")));
extern Function __init_array_end[] __attribute__((visibility("hidden")));

int __real___libc_start_main(int (*)(int, char**, char**), int, char**, Function, void (*)(), void (*)(), void*);

static void Construct(int count, char** arguments, char** environment) {
  for (Function* next = __init_array_start; next != __init_array_end; ++next) (*next)(count, arguments, environment);
}

int __wrap___libc_start_main(int (*main)(int, char**, char**), int count, char** arguments, Function, void (*)(),
                             void (*at_end)(), void* stack_end) {
  return __real___libc_start_main(main, count, arguments, &Construct, nullptr, at_end, stack_end);
}

}  // extern "C"
