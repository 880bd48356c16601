//! How a configuration says how a thread shares the processors.
//!
//! Reference: sched(7), sched_setaffinity(2); the numbers are those of [`weft_port::Scheduling`].
//!
//! ```text
//! priority nice N;   priority fifo N;   processor N…;
//! ```

use std::ops::RangeInclusive;

use weft_config::{Block, Entry, Error, Errors, gather};
use weft_port::{Priority, Scheduling};

/// The words of the statements that [`read_scheduling`] reads.
pub const SCHEDULING: [&str; 2] = ["priority", "processor"];
/// Numbers of processors that can be asked for (`CPU_SETSIZE`).
const PROCESSORS: RangeInclusive<u16> = 0..=1023;

/// Reads the statements [`SCHEDULING`] of a block; what is not said stays as it is.
///
/// # Errors
/// Mistakes with their places.
pub fn read_scheduling(block: &mut Block<'_>) -> Result<Scheduling, Errors> {
    let [one, many] = SCHEDULING;
    let priority = block.one(one)?.map(priority).transpose()?;
    let processors = gather(block.many(many).into_iter().map(processors))?;
    Ok(Scheduling { priority, processors: processors.into_iter().flatten().collect() })
}

fn priority(mut entry: Entry<'_>) -> Result<Priority, Error> {
    let kind: String = entry.argument("`nice` or `fifo`")?;
    let number: String = entry.argument("the number of the priority")?;
    let read =
        Priority::of_words(&kind, &number).map_err(|sentence| entry.error_at(1, sentence))?;
    entry.end()?;
    Ok(read)
}

fn processors(mut entry: Entry<'_>) -> Result<Vec<u16>, Errors> {
    let mut numbers = vec![entry.argument::<u16>("the number of a processor")?];
    numbers.extend(entry.rest::<u16>()?);
    entry.end()?;
    match numbers.iter().all(|number| PROCESSORS.contains(number)) {
        true => Ok(numbers),
        false => Err(entry.error_at(1, "processors have numbers from 0 to 1023").into()),
    }
}

#[cfg(test)]
mod tests {
    use weft_config::Document;

    use super::*;

    fn read(text: &str) -> Result<Scheduling, String> {
        let document = Document::parse("text", text).map_err(|errors| errors.to_string())?;
        let mut block = document.block();
        let scheduling = read_scheduling(&mut block).map_err(|errors| errors.to_string())?;
        block.finish().map(|()| scheduling).map_err(|errors| errors.to_string())
    }

    #[test]
    fn a_priority_and_processors_are_read() {
        assert_eq!(read(""), Ok(Scheduling::default()));
        let all = read("processor 3 1; priority fifo 9; processor 1023;").unwrap();
        assert_eq!(all.priority, Some(Priority::Fifo(9)));
        assert_eq!(all.processors.into_iter().collect::<Vec<_>>(), [1, 3, 1023]);
        assert_eq!(read("priority nice -20;").unwrap().priority, Some(Priority::Nice(-20)));
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        for (text, part) in [
            ("priority fifo 0;", "1 to 99"),
            ("priority nice;", "the number of the priority"),
            ("priority nice 1 2;", "text:1"),
            ("priority nice 1; priority nice 2;", "text:1"),
            ("processor;", "the number of a processor"),
            ("processor 1 1024;", "from 0 to 1023"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
