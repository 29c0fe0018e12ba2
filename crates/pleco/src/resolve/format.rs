// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The clause `format`: the description as a printf format, whose conversions
//! take the fields in order [C11 §7.21.6.1, without `*`, `n` and `m$`].

use crate::diagnostic::{Code, Reporter};
use crate::format_string::{Conversion, Piece, pieces};
use crate::schema::{Event, FieldType, Integer, Scalar};
use crate::syntax::EventDefinition;

pub(super) fn check(definition: &EventDefinition, event: &Event, reporter: &mut Reporter<'_>) {
    let Some(text) = &definition.description else {
        reporter
            .report(Code::FormatWithoutText, definition.name.span, "there is nothing to format")
            .label("expected a description behind this name")
            .help("write the format as the description: `event NAME \"took %u ns\" (…) format`");
        return;
    };
    let mut fields = event.fields.iter().enumerate();
    for piece in pieces(&text.value) {
        if reporter.is_full() {
            return;
        }
        let conversion = match piece {
            Piece::Text(_) => continue,
            Piece::Conversion(conversion) => conversion,
            Piece::Unusable(written) => {
                let message = format!("`{written}` is no usable conversion");
                reporter
                    .report(Code::FormatConversion, text.span, message)
                    .label("expected %d %u %x %o %c %s %p %f %e %g %a or %%")
                    .help("widths are numbers; `%n` and `*` cannot be used");
                continue;
            }
        };
        let Some((_, field)) = fields.next() else {
            let count = event.fields.len();
            let message = format!("`{}` has no field: there are {count}", conversion.written);
            reporter
                .report(Code::FormatMissingField, text.span, message)
                .label("expected as many conversions as fields");
            return;
        };
        if !suits(&conversion, field.ty) {
            let message =
                format!("`{}` does not suit the field `{}`", conversion.written, field.name);
            reporter
                .report(Code::FormatType, text.span, message)
                .label(format!("expected {}", wanted(field.ty)));
        }
    }
    if let Some((index, field)) = fields.next() {
        let span = definition
            .fields
            .as_ref()
            .and_then(|fields| fields.get(index))
            .map_or(definition.name.span, |field| field.name.span);
        let message = format!("the format does not print the field `{}`", field.name);
        reporter
            .report(Code::FormatUnusedField, span, message)
            .label("expected a conversion for it in the description");
    }
}

fn suits(conversion: &Conversion<'_>, ty: FieldType) -> bool {
    let FieldType::Scalar(scalar) = ty else {
        return ty == FieldType::String && conversion.letter == 's';
    };
    match conversion.letter {
        'd' | 'i' | 'u' | 'x' | 'X' | 'o' => !matches!(scalar, Scalar::F32 | Scalar::F64),
        'c' => matches!(scalar, Scalar::Integer(_)),
        'p' => matches!(scalar, Scalar::Integer(Integer::U32 | Integer::U64)),
        's' => matches!(scalar, Scalar::Enum { .. } | Scalar::Bool),
        _ => matches!(scalar, Scalar::F32 | Scalar::F64),
    }
}

fn wanted(ty: FieldType) -> &'static str {
    match ty {
        FieldType::Scalar(Scalar::F32 | Scalar::F64) => "%f, %e, %g or %a",
        FieldType::Scalar(Scalar::Integer(_)) => "%d, %u, %x or %o",
        FieldType::Scalar(Scalar::Enum { .. } | Scalar::Bool) => "%s, or %d for the number",
        FieldType::String => "%s",
        FieldType::Array { .. } | FieldType::Sequence(_) | FieldType::Bytes => {
            "no format: only single values can be printed"
        }
    }
}
