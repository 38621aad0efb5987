//! `baton fmt`.

use super::*;

#[test]
fn a_text_that_is_no_toml_is_refused_at_its_place() {
    let error = format("a = \n", "b.toml").unwrap_err().to_string();
    assert!(error.starts_with("b.toml:1:"), "{error}");
}

#[test]
fn white_space_gets_one_form_and_all_else_stays() {
    let text = "\n\n#  about\n[[ listen ]]   # here\n\taddr=':8080'\r\n\n\n\nname   =  \"web\" #1\n\
                timeout={head='5s',  keep_alive = \"1m\"}\n# of the route\n[[route]]\nto=[ 'a:1' ,'b:1' , ]\n\
                deny = [ # no\n'10.0.0.0/8',\n    # inner\n  '10.0.0.1',\n]\nempty = [ ]\nnone = { }\n\
                a . b.\"c d\"  = 1.5\nwhen = 1979-05-27 07:32:00\ntext = '''\n  as  it is\n'''\n\
                long_key_here = 1 # two\nk = 2     # three\n\n";
    let expected = "\
#  about
[[listen]] # here
addr = ':8080'

name = \"web\" #1
timeout = { head = '5s', keep_alive = \"1m\" }

# of the route
[[route]]
to = ['a:1', 'b:1',]
deny = [ # no
  '10.0.0.0/8',
  # inner
  '10.0.0.1',
]
empty = []
none = {}
a.b.\"c d\" = 1.5
when = 1979-05-27 07:32:00
text = '''
  as  it is
'''
long_key_here = 1 # two
k = 2             # three
";
    let formatted = format(text, "b.toml").unwrap();
    assert_eq!(formatted, expected);
    assert_eq!(format(&formatted, "b.toml").unwrap(), expected);
}

#[test]
fn the_reference_and_what_is_printed_have_the_form_already() {
    let printed = print(&parse(&reference(), "b.toml").unwrap());
    for text in [reference(), printed] {
        assert_eq!(format(&text, "b.toml").unwrap(), text);
    }
    assert_eq!(format("\u{feff}a = 1\n", "b.toml").unwrap(), "a = 1\n");
    assert_eq!(format("", "b.toml").unwrap(), "");
    assert_eq!(format("\n# a\n\n", "b.toml").unwrap(), "# a\n");
}
