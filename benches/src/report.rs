//! One line for each figure: what, measured, budget, verdict.

/// A figure and what it may be.
pub(crate) struct Line {
    pub(crate) what: &'static str,
    /// Not a number where it could not be taken.
    pub(crate) measured: f64,
    pub(crate) unit: &'static str,
    pub(crate) budget: Budget,
}

pub(crate) enum Budget {
    AtMost(f64),
    AtLeast(f64),
    /// Told for the eye; nothing is promised.
    None,
}

impl Line {
    fn verdict(&self) -> &'static str {
        match self.budget {
            _ if self.measured.is_nan() => "failed",
            Budget::AtMost(most) if self.measured <= most => "ok",
            Budget::AtLeast(least) if self.measured >= least => "ok",
            Budget::AtMost(_) => "over",
            Budget::AtLeast(_) => "under",
            Budget::None => "",
        }
    }
}

/// The middle one.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

pub(crate) fn print(lines: &[Line]) {
    println!("{:<78} {:>12} {:>14} {:>6}", "what", "measured", "budget", "");
    for line in lines {
        let budget = match line.budget {
            Budget::AtMost(most) => format!("≤ {}", figure(most, line.unit)),
            Budget::AtLeast(least) => format!("≥ {}", figure(least, line.unit)),
            Budget::None => String::new(),
        };
        let measured = figure(line.measured, line.unit);
        println!("{:<78} {measured:>12} {budget:>14} {:>6}", line.what, line.verdict());
    }
}

fn figure(value: f64, unit: &str) -> String {
    if value.is_nan() {
        "none".to_owned()
    } else if value >= 1000.0 {
        format!("{value:.0} {unit}")
    } else {
        format!("{value:.3} {unit}")
    }
}
