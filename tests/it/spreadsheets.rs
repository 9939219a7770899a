//! CSV as spreadsheets write and read it: what each kind of file that a shop has becomes.

use std::path::Path;

use crate::backup::succeed;
use support::harness::{Folder, expect_refusal, run};

const WHERE: &str = "as CSV UTF-8";

/// Imports a file into a new database, and returns the pets, or nothing if it is refused with this.
#[track_caller]
fn imported(name: &str, bytes: &[u8], words: &[&str], refusal: Option<&str>) -> Vec<String> {
    let folder = Folder::new();
    let file = folder.path().join(name);
    std::fs::write(&file, bytes).unwrap();
    let words = [&["import", "--create", file.to_str().unwrap()], words].concat();
    if let Some(said) = refusal {
        let output = run(&words, &folder.database());
        let lines = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            lines.contains(said) && !lines.contains("--skip-invalid"),
            "{name}: {lines}"
        );
        expect_refusal(output, 1, said);
        return Vec::new();
    }
    succeed(&words, &folder.database());
    let pets = succeed(&["export"], &folder.database());
    pets.lines().map(str::to_owned).collect()
}

fn pet(id: i64, name: &str, category: i64, status: &str) -> String {
    let status = if status.is_empty() {
        String::new()
    } else {
        format!(",\"status\":\"{status}\"")
    };
    format!("{{\"id\":{id},\"name\":\"{name}\",\"categoryId\":{category}{status}}}")
}

#[test]
fn files_of_spreadsheets_are_read() {
    let jose = || vec![pet(1, "José", 3, "sold"), pet(2, "Zoé", 4, "")];
    let files: [(&str, String, &[&str]); 16] = [
        (
            "names as people write them",
            "Name;Category ID;STATUS\r\nJosé;3;Sold\r\nZoé;4;\r\n".into(),
            &[],
        ),
        (
            "commas",
            "name,categoryId,status\r\nJosé,3,sold\r\nZoé,4,\r\n".into(),
            &[],
        ),
        (
            "byte order mark",
            "\u{feff}name,categoryId,status\r\nJosé,3,sold\r\nZoé,4,\r\n".into(),
            &[],
        ),
        (
            "semicolons",
            "\u{feff}name;categoryId;status\r\nJosé;3;sold\r\nZoé;4;\r\n".into(),
            &[],
        ),
        (
            "tabs",
            "name\tcategoryId\tstatus\nJosé\t3\tsold\nZoé\t4\t\n".into(),
            &[],
        ),
        (
            "a line for Excel",
            "sep=;\r\nname;categoryId;status\r\nJosé;3;sold\r\nZoé;4;\r\n".into(),
            &[],
        ),
        (
            "capital letters",
            "Name;CategoryID;STATUS\nJosé;3;Sold\nZoé;4;\n".into(),
            &[],
        ),
        (
            "another order",
            "status,name,categoryId\nSOLD,José,3\n,Zoé,4\n".into(),
            &[],
        ),
        (
            "quotes",
            "\"name\";\"categoryId\";\"status\"\n\"José\";\"3\";\"sold\"\n\"Zoé\";\"4\";\"\"\n"
                .into(),
            &[],
        ),
        (
            "numbers with a fraction",
            "name,categoryId,status\nJosé,3.0,sold\nZoé,4.00,\n".into(),
            &[],
        ),
        (
            "blanks",
            "name , categoryId,status\nJosé, 3 ,sold \nZoé,4 , \n".into(),
            &[],
        ),
        (
            "empty rows",
            "\n;;\nname;categoryId;status\n;;\nJosé;3;sold\n\n;;\nZoé;4;\n;;\n;;\n".into(),
            &[],
        ),
        (
            "empty columns",
            "name,categoryId,status,,\nJosé,3,sold,,\nZoé,4,,,\n".into(),
            &[],
        ),
        (
            "no last line break",
            "name,categoryId,status\nJosé,3,sold\nZoé,4,".into(),
            &[],
        ),
        (
            "a further column",
            "name;Price;categoryId;status;My notes\nJosé;9,90;3;sold;x\nZoé;;4;;\n".into(),
            &["--ignore-columns", "price,my notes"],
        ),
        (
            "ids of another table",
            "Id;name;categoryId;status\nA-7;José;3;sold\nA-8;Zoé;4;\n".into(),
            &["--new-ids"],
        ),
    ];
    for (what, text, words) in files {
        let found = imported("pets.csv", text.as_bytes(), words, None);
        assert_eq!(found, jose(), "{what}");
    }
    let odd = "name,categoryId\n\"two\nlines\",1\n\"a \"\"b\"\"; c, d\",2\n,3\n";
    let found = imported("pets.csv", odd.as_bytes(), &[], None);
    assert_eq!(
        found,
        [
            pet(1, "two\\nlines", 1, ""),
            pet(2, "a \\\"b\\\"; c, d", 2, ""),
            pet(3, "", 3, "")
        ]
    );
}

#[test]
fn other_files_are_named_with_what_helps() {
    let utf_16: Vec<u8> = "\u{feff}name;categoryId\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let files: [(&str, &[u8], &str); 13] = [
        (
            "pets.csv",
            b"name;categoryId\r\nRex;1\r\nJos\xe9;3\r\nZo\xe9;4\r\n",
            "line 3: The line is not UTF-8 text. If it is windows-1252",
        ),
        (
            "pets.csv",
            b"name;categoryId\r\nJos\xe9;3\r\n",
            "iconv -f windows-1252 -t utf-8 ",
        ),
        ("pets.csv", b"N\xe4me;categoryId\r\nRex;3\r\n", WHERE),
        ("pets.csv", &utf_16, "is UTF-16 text: save it as UTF-8"),
        (
            "pets.csv",
            b"name;categoryId\rRex;3\r",
            "lines end with CR alone",
        ),
        (
            "pets.csv",
            b"name;price;categoryId\nRex;9;3\n",
            "--ignore-columns 'price' leaves out",
        ),
        (
            "pets.csv",
            b"name;categoryId\n\"Rex;3\nTom;4\n",
            "a quote there may be missing",
        ),
        (
            "pets.csv",
            b"name;status\nRex;sold\n",
            "the column 'categoryId' is missing",
        ),
        (
            "pets.csv",
            b"PK\x03\x04\x14\0\x06\0",
            "is a workbook of a spreadsheet",
        ),
        ("pets.xlsx", b"PK\x03\x04\x14\0\x06\0", WHERE),
        ("pets.xls", b"\xd0\xcf\x11\xe0\xa1\xb1", WHERE),
        (
            "pets.csv.gz",
            b"\x1f\x8b\x08\0",
            "is compressed with gzip: unpack it first: gunzip < FILE > NEW-FILE",
        ),
        ("pets.pdf", b"%PDF-1.7\n", "is a PDF document"),
    ];
    for (name, bytes, said) in files {
        imported(name, bytes, &[], Some(said));
    }
    // Lines that are wrong by themselves are all told, and can be left out.
    let text = "name;categoryId;status\nRex;1.00E+05;sold\nTom;3,5;sold\nMax;1;verkauft\nAda;1;sold;x\nZoe;2;\nBo\"b;2;\n";
    let folder = Folder::new();
    let file = folder.path().join("pets.csv");
    std::fs::write(&file, text).unwrap();
    let words = ["import", "--create", file.to_str().unwrap()];
    let said = String::from_utf8(run(&words, &folder.database()).stderr).unwrap();
    for line in [
        "Line 2: The column 'categoryId' must be a 64-bit integer",
        "Line 3: The column 'categoryId' must be",
        "Line 4: The column 'status' must be 'available', 'pending' or 'sold', not 'verkauft'",
        "Line 5: The row has 4 fields, and the header has 3.",
        "Line 7: A field with a quote",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert!(!said.contains("Line 6"), "{said}");
}

#[test]
fn what_a_spreadsheet_opens_comes_back_to_the_letter() {
    let names = [
        "",
        "José",
        "=1+1",
        "+49 40",
        "-x",
        "@SUM(A1)",
        "'quoted'",
        "\"",
        "a;b,c\td",
        "2026-11-28",
        "3-4",
        "007",
        "1e5",
        "50%",
        "12:30",
        "TRUE",
        "two\nlines",
        "\tx",
        "\u{ff1d}1+1",
        " x ",
        "Old Zoé-Marie II.",
        "1e+10",
        ".5",
        " 5",
        "Jan 1",
        "$5",
        "\u{a0}=1",
        "\u{1f415}",
    ];
    let (folder, copy) = (Folder::new(), Folder::new());
    let rows: String = names
        .iter()
        .zip(
            [1, -9_007_199_254_740_993, i64::MAX, i64::MIN, 0]
                .iter()
                .cycle(),
        )
        .map(|(name, category)| {
            format!(
                "{}\n",
                serde_json::json!({ "name": name, "categoryId": category, "status": "sold" })
            )
        })
        .collect();
    let file = folder.path().join("pets");
    std::fs::write(&file, rows).unwrap();
    succeed(
        &["import", "--create", file.to_str().unwrap()],
        &folder.database(),
    );
    let pets = succeed(&["export"], &folder.database());
    for (format, separator) in [("excel", ","), ("excel-semicolon", ";")] {
        let sheet = succeed(&["export", "--format", format], &folder.database());
        let head = ["\u{feff}id", "name (text)", "categoryId", "status\r\n"].join(separator);
        assert!(sheet.starts_with(&head), "{sheet}");
        // No cell is a formula, and none is a number that loses digits or a date.
        for cell in [
            "=1+1",
            "+49 40",
            "@SUM",
            "2026-11-28",
            "007",
            "1e+10",
            ".5",
            " 5",
            "Jan 1",
            "TRUE",
            "$5",
            "\u{a0}=1",
            "-9007199254740993",
        ] {
            assert!(sheet.contains(&format!("'{cell}")), "{cell}: {sheet}");
        }
        assert!(
            sheet.contains("Old Zoé-Marie II.") && !sheet.contains("'Old"),
            "{sheet}"
        );
        let file = folder.path().join("sheet.csv");
        std::fs::write(&file, &sheet).unwrap();
        let words = ["import", "--update", file.to_str().unwrap()];
        let said = String::from_utf8(run(&words, &folder.database()).stderr).unwrap();
        assert!(said.starts_with("28 the same, 0 changed"), "{said}");
        let database = copy.path().join(format);
        succeed(
            &["import", "--create", "--keep-ids", file.to_str().unwrap()],
            &database,
        );
        assert_eq!(succeed(&["export"], &database), pets);
    }
    // Only that form has apostrophes that are none.
    let plain = succeed(&["export", "--format", "csv"], &folder.database());
    assert!(
        plain.starts_with("id,name,categoryId,status\r\n") && plain.contains("\r\n3,=1+1,"),
        "{plain}"
    );
    same(&folder.database(), &plain);
}

#[track_caller]
fn same(database: &Path, csv: &str) {
    let file = database.with_file_name("plain.csv");
    std::fs::write(&file, csv).unwrap();
    let said = run(&["import", "--update", file.to_str().unwrap()], database).stderr;
    let said = String::from_utf8(said).unwrap();
    assert!(said.starts_with("28 the same, 0 changed"), "{said}");
}

#[test]
fn advice_on_columns_names_those_that_are_ignored_already() {
    let sheet = b"name;price;categoryId;notes\nRex;9;3;x\n";
    let words = ["--ignore-columns", "price"];
    imported(
        "pets.csv",
        sheet,
        &words,
        Some("--ignore-columns 'price,notes' leaves out"),
    );
    let words = ["--ignore-columns", "price,notes"];
    assert_eq!(
        imported("pets.csv", sheet, &words, None),
        [pet(1, "Rex", 3, "")]
    );
}
