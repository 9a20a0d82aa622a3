//! The files in which the programs of AWS keep credentials and settings, by profiles.

use std::path::{Path, PathBuf};

use transcript_storage::ReadDisk;

/// The maximum length of a file that is read, in bytes.
const MAX_LEN: usize = 1 << 20;

/// What a profile states, of what is used here.
#[derive(Default)]
pub(crate) struct Profile {
    pub(crate) access_key_id: Option<String>,
    pub(crate) secret_access_key: Option<String>,
    pub(crate) session_token: Option<String>,
    pub(crate) region: Option<String>,
    pub(crate) endpoint: Option<String>,
}

impl Profile {
    /// Reads the profile that the environment names, or `default`, from the two files, of which each may be missing.
    pub(crate) fn read(disk: &dyn ReadDisk, variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let name = variable("AWS_PROFILE").unwrap_or_else(|| "default".into());
        let home = variable("HOME").or_else(|| variable("USERPROFILE"));
        let folder = home.map(|home| Path::new(&home).join(".aws"));
        let file = |named: &str, usual: &str| {
            let path = variable(named).map(PathBuf::from);
            path.or_else(|| Some(folder.as_ref()?.join(usual)))
        };
        let mut profile = Self::default();
        let of_profile = format!("profile {name}");
        // The file of credentials is read last and goes before the other one.
        if let Some(path) = file("AWS_CONFIG_FILE", "config") {
            let section = if name == "default" {
                &name
            } else {
                &of_profile
            };
            profile.add(disk, &path, section);
        }
        if let Some(path) = file("AWS_SHARED_CREDENTIALS_FILE", "credentials") {
            profile.add(disk, &path, &name);
        }
        profile
    }

    fn add(&mut self, disk: &dyn ReadDisk, path: &Path, section: &str) {
        let Ok(bytes) = disk.read(path, MAX_LEN) else {
            return;
        };
        let text = String::from_utf8_lossy(&bytes);
        let mut is_in_section = false;
        for line in text.lines() {
            // Indented lines belong to the setting before them.
            if line.starts_with([' ', '\t', '#', ';']) {
                continue;
            }
            if let Some(named) = line.trim_end().strip_prefix('[') {
                is_in_section = named.trim_end_matches(']').trim() == section;
            } else if let Some((key, value)) = line.split_once('=').filter(|_| is_in_section) {
                let value = Some(value.trim().to_owned()).filter(|value| !value.is_empty());
                match key.trim() {
                    "aws_access_key_id" => self.access_key_id = value,
                    "aws_secret_access_key" => self.secret_access_key = value,
                    "aws_session_token" => self.session_token = value,
                    "region" => self.region = value,
                    "endpoint_url" => self.endpoint = value,
                    _ => {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use transcript_storage::MemoryDisk;

    use super::*;

    #[test]
    fn a_profile_has_the_settings_of_its_section_in_both_files() {
        let disk = MemoryDisk::new();
        disk.put("/h/.aws/config", "[default]\nregion = a\n\n[profile work]\nregion=eu-1\ns3 =\n  region = no\n[other]\nregion = b\n");
        disk.put("/h/.aws/credentials", "[default]\naws_access_key_id = D\n[work]\naws_access_key_id = K\naws_secret_access_key = S\n# aws_session_token = x\n");
        let read = |profile: Option<&str>| {
            let profile = profile.map(str::to_owned);
            Profile::read(&disk, &move |name| match name {
                "HOME" => Some("/h".into()),
                "AWS_PROFILE" => profile.clone(),
                _ => None,
            })
        };
        let work = read(Some("work"));
        assert_eq!(work.region.as_deref(), Some("eu-1"));
        assert_eq!(work.access_key_id.as_deref(), Some("K"));
        assert_eq!(work.secret_access_key.as_deref(), Some("S"));
        assert_eq!(work.session_token, None);
        let default = read(None);
        assert_eq!(default.region.as_deref(), Some("a"));
        assert_eq!(default.access_key_id.as_deref(), Some("D"));
        assert_eq!(default.secret_access_key, None);
        assert!(read(Some("missing")).access_key_id.is_none());
    }
}
