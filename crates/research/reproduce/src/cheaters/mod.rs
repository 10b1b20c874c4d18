//! Many applications that claim a wrong hint: the flows that gain, those that lose, and the gain that TSQ's drop law
//! allows.

mod law;

use cutline_study::Code;

pub(crate) const CODE: Code = Code {
    own: |_, id| law::own(id),
    sections: |figure, stored| match (figure.number, stored.first()) {
        (3, Some((_, data))) => vec![law::section(data)],
        _ => cutline_study::sections(figure, stored),
    },
};
