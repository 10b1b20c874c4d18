//! TSQ on current links: CUBIC, ECN, 100 Mbit/s and 1 Gbit/s, round-trip times of 10 to 200 ms.

mod charge;

use cutline_study::Code;

pub(crate) const CODE: Code = Code {
    own: |_, id| charge::own(id),
    sections: |figure, stored| match (figure.number, stored.first()) {
        (5, Some((_, data))) => vec![charge::section(data)],
        _ => cutline_study::sections(figure, stored),
    },
};
