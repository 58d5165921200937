"""Compilers and build tools work inside as outside: gcc and make, cargo, java."""
import inside

UNITS = 12


def c_project():
    files = {f"unit{i}.c": f"int unit{i}(void) {{ return {i}; }}\n" for i in range(UNITS)}
    calls = " + ".join(f"unit{i}()" for i in range(UNITS))
    declarations = "".join(f"int unit{i}(void);\n" for i in range(UNITS))
    files["main.c"] = (f'#include <stdio.h>\n{declarations}'
                       f'int main(void) {{ printf("%d\\n", {calls}); return 0; }}\n')
    files["Makefile"] = ("objects = main.o " + " ".join(f"unit{i}.o" for i in range(UNITS)) +
                         "\nall: program\nprogram: $(objects)\n\t$(CC) -o $@ $^\n"
                         "%.o: %.c\n\t$(CC) -O2 -g -c -o $@ $<\n")
    return files


class Building(inside.Case):
    def test_gcc_and_make_in_parallel(self):
        self.need("gcc", "make")
        self.same_script("make -s -j4; ./program; file=$(ls *.o | wc -l); echo $file objects; make -q",
                         files=c_project(), tells=["66", f"{UNITS + 1} objects"])

    def test_cxx_with_temporary_files(self):
        self.need("g++")
        self.same_script("g++ -std=c++20 -O1 -save-temps=obj -o program p.cpp; ./program", files={
            "p.cpp": '#include <iostream>\n#include <thread>\nint main() {\n'
                     'std::jthread t{[] { std::cout << "from a thread\\n"; }};\n}\n'},
                         tells=["from a thread"])

    def test_cargo_with_a_path_dependency(self):
        self.need("cargo")
        self.same_script("cargo build -q --offline; ./target/debug/outer; cargo test -q --offline 2>&1 | "
                         "grep -c 'test result: ok'", timeout=2 * inside.PATIENCE, files={
            "Cargo.toml": '[package]\nname = "outer"\nversion = "0.1.0"\nedition = "2021"\n'
                          '[dependencies]\ninner = { path = "inner" }\n',
            "src/main.rs": 'fn main() { let t = std::thread::spawn(|| inner::twice(21));'
                           ' println!("{}", t.join().unwrap()); }\n'
                           '#[test] fn works() { assert_eq!(inner::twice(2), 4); }\n',
            "inner/Cargo.toml": '[package]\nname = "inner"\nversion = "0.1.0"\nedition = "2021"\n',
            "inner/src/lib.rs": "pub fn twice(x: i32) -> i32 { x * 2 }\n"}, tells=["42"])

    def test_java(self):
        self.need("javac", "java")
        self.same_script("javac Program.java; java Program", timeout=2 * inside.PATIENCE, files={
            "Program.java": """
                import java.util.concurrent.*;
                public class Program {
                    public static void main(String[] a) throws Exception {
                        var pool = Executors.newFixedThreadPool(8);
                        var done = new java.util.ArrayList<Future<Integer>>();
                        for (int i = 0; i < 100; i++) { final int n = i; done.add(pool.submit(() -> n)); }
                        int sum = 0;
                        for (var f : done) sum += f.get();
                        System.out.println(sum);
                        pool.shutdown();
                        var child = new ProcessBuilder("sh", "-c", "echo from a child; exit 3").inheritIO().start();
                        System.out.println(child.waitFor());
                        System.gc();
                    }
                }"""}, tells=["4950", "from a child", "3"])
