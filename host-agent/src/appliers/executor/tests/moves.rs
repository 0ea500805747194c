//! Resources that change their path, their name or their kind, with a fault at each point on the way.

use super::faults::{Named, every_fault, file};
use super::*;

fn nothing(_: &Bench) {}

/// Somebody's own files, in the way of what is declared.
fn theirs(bench: &Bench) {
    fs::write(bench.path("a"), "theirs").unwrap();
    fs::set_permissions(bench.path("a"), fs::Permissions::from_mode(0o604)).unwrap();
}

fn seed(bench: &Bench, name: &str, content: &str) -> wire::resource::Kind {
    file(wire::File { create_once: true, ..bench.file(name, content) })
}

/// From one declaration to the other and, from whatever a fault left, to it, back, and to nothing.
async fn goes_over(found: fn(&Bench), one: fn(&Bench) -> Named, other: fn(&Bench) -> Named) {
    every_fault(found, &[&one], &other, &[&other, &one, &|_| vec![]]).await;
}

#[tokio::test]
async fn files_that_swap_paths_are_nobody_elses() {
    let paths = |[x, y]: [&'static str; 2]| {
        move |bench: &Bench| vec![("x", file(bench.file(x, "of x"))), ("y", file(bench.file(y, "of y")))]
    };
    let [one, other] = [paths(["a", "b"]), paths(["b", "a"])];
    for found in [nothing, theirs] {
        every_fault(found, &[&one], &other, &[&other, &one, &|_| vec![]]).await;
    }
}

#[tokio::test]
async fn file_under_another_name_is_taken_over_and_not_removed() {
    for found in [nothing, theirs] {
        goes_over(
            found,
            |bench| vec![("old", file(bench.file("a", "ours")))],
            |bench| vec![("new", file(bench.file("a", "ours, newer")))],
        )
        .await;
    }
    let mut bench = Bench::new();
    let old = vec![("old", file(bench.file("a", "ours")))];
    let in_force = bench.in_force_as(old);
    bench.executor.apply(&in_force, Trigger::Declaration, &|| false).await.unwrap();
    let inode = fs::metadata(bench.path("a")).unwrap().ino();
    let new = vec![("new", file(bench.file("a", "ours")))];
    let in_force = bench.in_force_as(new);
    let report = bench.executor.apply(&in_force, Trigger::Declaration, &|| false).await.unwrap();
    assert_eq!(outcomes(&report), [Outcome::Changed, Outcome::Kept]);
    assert_eq!(report.results[1].note, "`m.new` stands for it now");
    assert_eq!(fs::metadata(bench.path("a")).unwrap().ino(), inode, "it is the same file");
}

#[tokio::test]
async fn seed_that_moves_is_written_anew_and_leaves_no_copy() {
    goes_over(nothing, |bench| vec![("x", seed(bench, "a", "seed"))], |bench| vec![("x", seed(bench, "b", "seed"))])
        .await;
    goes_over(theirs, |bench| vec![("x", seed(bench, "a", "seed"))], |bench| vec![("x", seed(bench, "b", "seed"))])
        .await;
    goes_over(theirs, |bench| vec![("x", seed(bench, "b", "seed"))], |bench| vec![("x", seed(bench, "a", "seed"))])
        .await;
}

#[tokio::test]
async fn seed_that_has_grown_stays_where_it_is_when_its_path_moves() {
    let mut bench = Bench::new();
    let here = vec![("x", seed(&bench, "a", "seed"))];
    bench.converges(here, "the start").await;
    fs::write(bench.path("a"), "grown").unwrap();
    let there = vec![("x", seed(&bench, "b", "seed"))];
    let in_force = bench.in_force_as(there.clone());
    let report = bench.executor.apply(&in_force, Trigger::Declaration, &|| false).await.unwrap();
    let kept = format!("`{}` is kept: it was changed since it was written", bench.path("a").display());
    assert_eq!((outcomes(&report), report.results[0].note.as_str()), (vec![Outcome::Changed], kept.as_str()));
    bench.converges(there, "once more").await;
    let stand = ["a", "b"].map(|name| fs::read_to_string(bench.path(name)).unwrap());
    assert_eq!(stand, ["grown", "seed"]);
}

#[tokio::test]
async fn folder_becomes_a_file_and_a_file_a_folder() {
    let folder: fn(&Bench) -> Named = |bench| {
        vec![
            ("a", bench.directory("a", 0o755)),
            ("inside", bench.directory("a/b", 0o755)),
            ("deep", file(bench.file("a/b/c", "deep"))),
        ]
    };
    let plain: fn(&Bench) -> Named = |bench| vec![("a", file(bench.file("a", "a file")))];
    goes_over(nothing, folder, plain).await;
    goes_over(nothing, plain, folder).await;
    every_fault(theirs, &[&plain], &folder, &[&folder, &plain, &|_| vec![]]).await;
    every_fault(theirs, &[&plain, &folder], &plain, &[&folder, &plain, &|_| vec![]]).await;
    // By other names, and into a folder in its own place.
    goes_over(nothing, plain, |bench| {
        vec![("folder", bench.directory("a", 0o755)), ("a", file(bench.file("a/b", "a file")))]
    })
    .await;
}

#[tokio::test]
async fn folder_that_is_not_ours_alone_makes_no_way() {
    let mut bench = Bench::new();
    let folder = vec![("a", bench.directory("a", 0o755))];
    bench.converges(folder, "the start").await;
    fs::write(bench.path("a/theirs"), "x").unwrap();
    let plain = vec![("a", file(bench.file("a", "a file")))];
    let in_force = bench.in_force_as(plain.clone());
    let report = bench.executor.apply(&in_force, Trigger::Declaration, &|| false).await.unwrap();
    assert_eq!(code(&report, 0), "wrong-type");
    assert_eq!(report.results[0].failure.as_ref().unwrap().fields["kept"], "it holds 1 entry");
    assert!(bench.path("a/theirs").exists());
    fs::remove_file(bench.path("a/theirs")).unwrap();
    bench.converges(plain, "they took it away").await;
    fs::write(bench.path("a"), "by hand").unwrap();
    let folder = vec![("a", bench.directory("a", 0o755))];
    let in_force = bench.in_force_as(folder);
    let report = bench.executor.apply(&in_force, Trigger::Declaration, &|| false).await.unwrap();
    assert_eq!(code(&report, 0), "wrong-type");
    assert_eq!(fs::read_to_string(bench.path("a")).unwrap(), "by hand");
}

#[tokio::test]
async fn folder_moves_with_what_it_holds() {
    goes_over(
        nothing,
        |bench| {
            vec![
                ("d", bench.directory("a", 0o755)),
                ("f", file(bench.file("a/f", "x"))),
                ("g", file(bench.file("a/g", "x"))),
            ]
        },
        |bench| vec![("d", bench.directory("b", 0o755)), ("f", file(bench.file("b/f", "x")))],
    )
    .await;
    goes_over(
        nothing,
        |bench| {
            vec![
                ("p", bench.directory("p", 0o755)),
                ("d", bench.directory("p/d", 0o755)),
                ("f", file(bench.file("p/d/f", "x"))),
            ]
        },
        |bench| vec![("d", bench.directory("d", 0o755)), ("f", file(bench.file("d/f", "x")))],
    )
    .await;
}

#[tokio::test]
async fn file_reached_by_another_path_is_not_removed() {
    let mut bench = Bench::new();
    fs::create_dir(bench.path("real")).unwrap();
    std::os::unix::fs::symlink(bench.path("real"), bench.path("link")).unwrap();
    let here = vec![("a", file(bench.file("link/f", "x")))];
    bench.converges(here, "the start").await;
    let there = vec![("a", file(bench.file("real/f", "x")))];
    bench.converges(there, "the same file").await;
    assert_eq!(fs::read_to_string(bench.path("real/f")).unwrap(), "x");
}
