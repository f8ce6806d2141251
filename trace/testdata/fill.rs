// See fill.c.
fn main() {
    let mut a: Vec<u64> = Vec::with_capacity(100_000);
    let p = a.as_mut_ptr();
    for i in 0..100_000 {
        unsafe { p.add(i).write_volatile(i as u64) }
    }
    println!("{:p}", p);
}
