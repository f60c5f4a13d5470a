// SPDX-License-Identifier: Apache-2.0
// Folders and files that somebody else could change are refused. Root plays two users here.
#include "base/folder.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/trusted_path.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace torch_lazy::base {
namespace {

using testing::HasSubstr;
constexpr uid_t kOther = 65534, kUser = 1001;

class Folders : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/lazy_folder_test.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    ASSERT_EQ(chmod(root_.c_str(), 0755), 0);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string In(const std::string& name) const { return absl::StrCat(root_, "/", name); }
  void MakeFolder(const std::string& name, mode_t mode, uid_t owner = geteuid()) const {
    ASSERT_EQ(mkdir(In(name).c_str(), 0700), 0);
    ASSERT_TRUE(owner == geteuid() || chown(In(name).c_str(), owner, owner) == 0);
    ASSERT_EQ(chmod(In(name).c_str(), mode), 0);
  }
  void MakeFile(const std::string& name, mode_t mode, uid_t owner = geteuid()) const {
    std::ofstream(In(name)) << "text";
    ASSERT_TRUE(owner == geteuid() || chown(In(name).c_str(), owner, owner) == 0);
    ASSERT_EQ(chmod(In(name).c_str(), mode), 0);
  }
  std::string Refusal(const std::string& name) const { return std::string(Folder::Make(In(name)).status().message()); }
  // What the check, run by another user in a process of its own, returns: up to 255.
  template <typename Check>
  static int As(uid_t user, Check check) {
    const pid_t child = fork();
    if (child == 0) {
      if (setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0) _exit(99);
      _exit(check());
    }
    int state = 0;
    waitpid(child, &state, 0);
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
  }

  std::string root_;
};

#define SKIP_UNLESS_ROOT() \
  if (geteuid() != 0) GTEST_SKIP() << "only root can play two users"

TEST_F(Folders, AreMadeForUsAlone) {
  const absl::StatusOr<Folder> folder = Folder::Make(In("a/b/c"));
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_TRUE(folder->can_write());
  EXPECT_TRUE(folder->is_private());
  for (const char* name : {"a", "a/b", "a/b/c"}) {
    struct stat info = {};
    ASSERT_EQ(lstat(In(name).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u) << name;
  }
}

TEST_F(Folders, AreNamedByAbsolutePaths) {
  EXPECT_EQ(Folder::Make("here/cache").status().message(), "here/cache is not an absolute path");
  EXPECT_FALSE(Folder::Make("").ok());
}

TEST_F(Folders, HoldWhatTheyOpened) {
  const Folder folder = *Folder::Make(In("cache"));
  ASSERT_TRUE(folder.Write("file", "ours", /*lasting=*/true).ok());
  ASSERT_EQ(rename(In("cache").c_str(), In("moved").c_str()), 0);
  MakeFolder("cache", 0700);
  std::ofstream(In("cache/file")) << "another";
  EXPECT_EQ(folder.Read("file"), "ours");
}

TEST_F(Folders, WriteFilesWholeAndReplaceThem) {
  const Folder folder = *Folder::Make(In("cache"));
  ASSERT_TRUE(folder.Write("file", "first", /*lasting=*/false).ok());
  ASSERT_TRUE(folder.Write("file", "second", /*lasting=*/true).ok());
  EXPECT_EQ(folder.Read("file"), "second");
  const std::vector<FileInfo> files = folder.List();
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].name, "file");
  EXPECT_EQ(files[0].size_bytes, 6);
}

TEST_F(Folders, AreRefusedWhereOthersWrite) {
  MakeFolder("open", 0777);
  EXPECT_EQ(Refusal("open"), absl::StrCat(In("open"), " may be written by others (chmod 700 ", In("open"), ")"));
  EXPECT_EQ(Refusal("open/cache"), absl::StrCat(In("open"), " may be written by others (chmod go-w ", In("open"), ")"));
  MakeFolder("group", 0770);
  EXPECT_THAT(Refusal("group/cache"), HasSubstr("may be written by others"));
}

TEST_F(Folders, MayLieBelowAStickyOne) {
  MakeFolder("sticky", 01777);
  EXPECT_TRUE(Folder::Make(In("sticky/cache")).ok());
}

TEST_F(Folders, MayBeReadByOthersIfTheyLieThere) {
  MakeFolder("seen", 0755);
  const absl::StatusOr<Folder> folder = Folder::Make(In("seen"));
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_TRUE(folder->can_write());
  EXPECT_FALSE(folder->is_private());
}

TEST_F(Folders, ThatNobodyWritesAreOnlyRead) {
  MakeFolder("closed", 0555);
  const absl::StatusOr<Folder> folder = Folder::Make(In("closed"));
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_FALSE(folder->can_write());
}

TEST_F(Folders, AreReachedThroughLinksButAreNone) {
  MakeFolder("target", 0700);
  ASSERT_EQ(symlink("target", In("link").c_str()), 0);
  EXPECT_TRUE(Folder::Make(In("link/cache")).ok());
  EXPECT_TRUE(std::filesystem::exists(In("target/cache")));
  EXPECT_EQ(Refusal("link"), absl::StrCat(In("link"), " is a link, not a folder"));
  ASSERT_EQ(symlink("circle", In("circle").c_str()), 0);
  EXPECT_THAT(Refusal("circle/cache"), HasSubstr("symbolic links"));
}

TEST_F(Folders, OfOthersAreRefused) {
  SKIP_UNLESS_ROOT();
  MakeFolder("theirs", 0700, kOther);
  EXPECT_EQ(Refusal("theirs"), absl::StrCat(In("theirs"), " belongs to somebody else, user 65534"));
  EXPECT_THAT(Refusal("theirs/cache"), HasSubstr("somebody else"));
  MakeFolder("sticky", 01777);
  MakeFolder("sticky/trap", 0755, kOther);
  EXPECT_THAT(Refusal("sticky/trap/cache"), HasSubstr("somebody else"));
}

TEST_F(Folders, AreNotReachedThroughLinksOfOthers) {
  SKIP_UNLESS_ROOT();
  MakeFolder("target", 0700);
  MakeFolder("sticky", 01777);
  ASSERT_EQ(symlink(In("target").c_str(), In("sticky/link").c_str()), 0);
  ASSERT_EQ(lchown(In("sticky/link").c_str(), kOther, kOther), 0);
  EXPECT_THAT(Refusal("sticky/link/cache"), HasSubstr("somebody else"));
}

TEST_F(Folders, OfRootAreReadByAll) {
  SKIP_UNLESS_ROOT();
  MakeFolder("shared", 0755);
  MakeFile("shared/file", 0644);
  EXPECT_EQ(As(kUser,
               [&] {
                 const absl::StatusOr<Folder> folder = Folder::Make(In("shared"));
                 if (!folder.ok()) return 1;
                 if (folder->can_write()) return 2;
                 return folder->Read("file") == "text" ? 0 : 3;
               }),
            0);
}

TEST_F(Folders, OfAUserAreNotReadByAnother) {
  SKIP_UNLESS_ROOT();
  MakeFolder("shared", 0755, kOther);
  EXPECT_EQ(As(kUser, [&] { return Folder::Make(In("shared")).ok() ? 1 : 0; }), 0);
}

TEST_F(Folders, GiveNoFilesThatOthersWrite) {
  const Folder folder = *Folder::Make(In("cache"));
  MakeFile("cache/good", 0600);
  MakeFile("cache/open", 0666);
  EXPECT_TRUE(folder.Open("good").ok());
  EXPECT_FALSE(folder.Open("open").ok());
  EXPECT_TRUE(absl::IsNotFound(folder.Open("missing").status()));
}

TEST_F(Folders, GiveNoLinksPipesOrFolders) {
  const Folder folder = *Folder::Make(In("cache"));
  MakeFile("cache/good", 0600);
  ASSERT_EQ(symlink("good", In("cache/link").c_str()), 0);
  ASSERT_EQ(mkfifo(In("cache/pipe").c_str(), 0600), 0);
  MakeFolder("cache/folder", 0700);
  for (const char* name : {"link", "pipe", "folder"}) EXPECT_FALSE(folder.Open(name).ok()) << name;
  EXPECT_EQ(folder.List().size(), 1u);
}

TEST_F(Folders, GiveNoFilesOfOthers) {
  SKIP_UNLESS_ROOT();
  const Folder folder = *Folder::Make(In("cache"));
  MakeFile("cache/theirs", 0644, kOther);
  EXPECT_THAT(std::string(folder.Open("theirs").status().message()), HasSubstr("somebody else"));
}

TEST_F(Folders, GiveTheFileThatWasOpenedWhateverItsNameMeansThen) {
  const Folder folder = *Folder::Make(In("cache"));
  ASSERT_TRUE(folder.Write("file", "first", /*lasting=*/false).ok());
  const File file = *folder.Open("file");
  ASSERT_TRUE(folder.Write("file", "other", /*lasting=*/false).ok());
  EXPECT_EQ(file.Read(), "first");
  std::ifstream through(file.LoadPath());
  std::string text;
  through >> text;
  EXPECT_EQ(text, "first");
  EXPECT_FALSE(file.identity() == folder.Open("file")->identity());
  std::set<std::string> paths;
  for (int k = 0; k < 1000; ++k) paths.insert(file.LoadPath());
  EXPECT_EQ(paths.size(), 1000u);
  EXPECT_TRUE(std::filesystem::exists(*paths.begin()));
}

TEST_F(Folders, APlaceForTemporaryFoldersMayBeSticky) {
  MakeFolder("sticky", 01777);
  MakeFolder("open", 0777);
  ASSERT_EQ(symlink("sticky", In("link").c_str()), 0);
  EXPECT_TRUE(CheckPlace(In("sticky")).ok());
  EXPECT_TRUE(CheckPlace(In("link")).ok());
  EXPECT_FALSE(CheckPlace(In("open")).ok());
  EXPECT_TRUE(absl::IsNotFound(CheckPlace(In("missing"))));
  EXPECT_FALSE(std::filesystem::exists(In("missing")));
}

}  // namespace
}  // namespace torch_lazy::base
