//! The provider edge: the CloudProvider trait and, behind the aws feature, EC2.
